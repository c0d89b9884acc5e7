/** What is asked of Redis and MongoDB, counted where it goes out. */

import { Redis } from "ioredis";
import { type CommandStartedEvent, MongoClient } from "mongodb";
import { clientOptions } from "../../../src/store/store.ts";

/** One command, by name: `find turns`, `evalsha addStandardJob`, `publish`. */
export type Commands = string[];

/** A client that tells of its commands, but not of those that keep its own connection. */
export function countedMongo(url: string): { client: MongoClient; commands: Commands } {
  const commands: Commands = [];
  const client = new MongoClient(url, { ...clientOptions, monitorCommands: true });
  client.on("commandStarted", ({ commandName, command }: CommandStartedEvent) => {
    if (!connectionKeeping.has(commandName))
      commands.push(`${commandName} ${String(command[commandName])}${purposeOf(JSON.stringify(command))}`);
  });
  return { client, commands };
}

/** Tells apart what has the same name: the reconciler's pages and the hints that are flushed in bulk. */
function purposeOf(command: string): string {
  if (/"filter":\{"open"/.test(command)) return " (open)";
  return /"\$max":/.test(command) ? " (hints)" : "";
}

const connectionKeeping = new Set(["hello", "ismaster", "ping", "endSessions", "saslStart", "saslContinue"]);

/** A look at everything that clients send to a server of our own; what scripts do inside the server is no round trip. */
export class RedisMonitor {
  readonly commands: Commands = [];
  readonly #client: Redis;
  readonly #scripts: ReadonlyMap<string, string>;

  private constructor(client: Redis, scripts: ReadonlyMap<string, string>) {
    this.#client = client;
    this.#scripts = scripts;
  }

  /** `scripts`: names by SHA-1. */
  static async open(url: string, scripts: ReadonlyMap<string, string>): Promise<RedisMonitor> {
    const client = new Redis(url);
    const monitor = new RedisMonitor(await client.monitor(), scripts);
    client.disconnect();
    monitor.#client.on("monitor", (_time: string, args: string[], source: string) => {
      if (source !== "lua") monitor.commands.push(monitor.#name(args));
    });
    return monitor;
  }

  close(): void {
    this.#client.disconnect();
  }

  #name([command = "", first = ""]: string[]): string {
    const name = command.toLowerCase();
    return name === "evalsha" ? `script ${this.#scripts.get(first) ?? first.slice(0, 8)}` : name;
  }
}

/** How often each command was sent. */
export function tally(commands: Commands): Map<string, number> {
  const counts = new Map<string, number>();
  for (const command of commands) counts.set(command, (counts.get(command) ?? 0) + 1);
  return counts;
}
