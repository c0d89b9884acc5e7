/**
 * The rig of the scenarios: worker and host processes on real servers, in a namespace that one test owns, with a journal.
 * Everything it began is ended with it, and a process that ended otherwise than the test meant fails the test.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { MongoClient } from "mongodb";
import { type Ended, type Entry, Headfast, type Sent } from "../../../src/index.ts";
import { keysOf } from "../redis.ts";
import { mongoUrl, redisUrl, uniqueName } from "../services.ts";
import { program } from "./bundle.ts";
import { Child, HostChild } from "./child.ts";
import { Journal } from "./journal.ts";
import { openGate, type Steering } from "./steered-bot.ts";
import type { WorkerWish } from "./worker-process.ts";

export interface RigOptions {
  redis?: string;
  mongo?: string;
}

/** What a worker of the rig may be told; the rest is as usual. */
export type WorkerChoice = Partial<Pick<WorkerWish, "bots" | "concurrency" | "drainMs" | "die" | "namespaces">>;

export class Rig {
  readonly redis: string;
  readonly mongo: string;
  readonly namespace: string;
  readonly folder = mkdtempSync(join(tmpdir(), "headfast-rig-"));
  readonly journal = new Journal(this.folder);
  /** Looks into Redis, past the product. */
  readonly client: Redis;
  readonly #children: Child[] = [];
  #host: Promise<Headfast> | undefined;
  #sent = 0;

  constructor(name: string, { redis = redisUrl(), mongo = mongoUrl() }: RigOptions = {}) {
    this.redis = redis;
    this.mongo = mongo;
    this.namespace = uniqueName(name);
    this.client = new Redis(redis, { maxRetriesPerRequest: null });
    this.client.on("error", () => undefined); // some tests take the server away
  }

  /** A host in this process. */
  host(): Promise<Headfast> {
    const { redis, mongo, namespace } = this;
    this.#host ??= Headfast.connect({ redis, mongo, namespace });
    return this.#host;
  }

  /** Begins a worker process; it serves when its `ready` resolves. */
  async begin(choice: WorkerChoice = {}): Promise<Child> {
    const { redis, mongo, folder } = this;
    const file = await program("worker-process");
    const name = `worker-${this.#children.length + 1}`;
    const wish: WorkerWish = {
      name,
      folder,
      redis,
      mongo,
      namespaces: [this.namespace],
      bots: [{ name: "ada" }],
      concurrency: 16,
      drainMs: 5_000,
      ...choice,
    };
    return this.#add(new Child(file, name, wish));
  }

  /** Worker processes that serve. */
  workers(count: number, choice: WorkerChoice = {}): Promise<Child[]> {
    return Promise.all(Array.from({ length: count }, async () => (await this.begin(choice)).ready()));
  }

  async hostProcesses(count: number): Promise<HostChild[]> {
    const { redis, mongo, namespace } = this;
    const file = await program("host-process");
    return Promise.all(
      Array.from({ length: count }, () =>
        this.#add(new HostChild(file, `host-${this.#children.length + 1}`, { redis, mongo, namespace })).ready(),
      ),
    );
  }

  /** A turn of the bot `ada`; ids count up unless one is given. */
  request(session: string, steering: Steering = {}, turnId?: string): { bot: string; session: string; turnId: string; input: string } {
    this.#sent += 1;
    return { bot: "ada", session, turnId: turnId ?? `t${this.#sent}`, input: JSON.stringify(steering) };
  }

  async send(session: string, steering: Steering = {}, turnId?: string): Promise<Sent> {
    return (await this.host()).turns.send(this.request(session, steering, turnId));
  }

  async wait(turn: { session: string; turnId: string; generation?: number }, timeoutMs = 50_000): Promise<Ended> {
    return (await this.host()).turns.wait(turn, { timeoutMs });
  }

  waitAll(turns: readonly { session: string; turnId: string; generation?: number }[], timeoutMs = 50_000): Promise<Ended[]> {
    return Promise.all(turns.map((turn) => this.wait(turn, timeoutMs)));
  }

  /** Opens a gate that turns wait at. */
  release(gate: string): void {
    openGate(this.folder, gate);
  }

  /** The whole log of a session. */
  async entries(session: string): Promise<Entry[]> {
    const { sessions } = await this.host();
    const entries: Entry[] = [];
    for (let more = true; more; ) {
      const page = await sessions.transcript(session, { after: entries.at(-1)?.seq ?? 0, limit: 1_000 });
      entries.push(...page.entries);
      more = page.more;
    }
    return entries;
  }

  /** Every key of the namespace. */
  keys(): Promise<string[]> {
    return keysOf(this.client, this.namespace);
  }

  /** Ends every process and removes what the test left behind. Throws where a process ended by itself, or a promise was forgotten. */
  async close(): Promise<void> {
    const fallen = this.#children
      .filter((child) => child.exit !== undefined && child.expected === "alive")
      .map((child) => `${child.name} (code ${child.exit?.code}, ${child.exit?.signal})`);
    const unhandled = this.journal.remarks("unhandled").map(({ worker, data }) => `${worker}: ${data.error}`);
    await Promise.all(this.#children.map((child) => child.kill()));
    await (await this.#host)?.close();
    await this.#removeAll();
    if (fallen.length + unhandled.length > 0)
      throw new Error(`processes that ended by themselves: ${fallen.join(", ")}; unhandled: ${unhandled.join("\n")}`);
  }

  async #removeAll(): Promise<void> {
    if (this.client.status === "ready") {
      const keys = await this.keys();
      if (keys.length > 0) await this.client.del(keys);
    }
    this.client.disconnect();
    await dropDatabases(this.mongo, [this.namespace]);
    rmSync(this.folder, { recursive: true, force: true });
  }

  #add<C extends Child>(child: C): C {
    this.#children.push(child);
    return child;
  }
}

export async function dropDatabases(url: string, names: readonly string[]): Promise<void> {
  const client = new MongoClient(url, { serverSelectionTimeoutMS: 2_000 });
  try {
    for (const name of names) await client.db(name).dropDatabase();
  } finally {
    await client.close();
  }
}

/** A test body with a rig, closed whatever happens. The body's own failure is told first. */
export function inRig(name: string, body: (rig: Rig) => Promise<void>, options?: RigOptions): () => Promise<void> {
  return async () => {
    const rig = new Rig(name, options);
    let failure: unknown;
    await body(rig).catch((error: unknown) => {
      failure = error;
    });
    await rig.close().catch((error: unknown) => {
      failure ??= error;
    });
    if (failure !== undefined) throw failure;
  };
}

/** True for the long form: sizes as the case says. */
export const long = process.env.HEADFAST_LONG === "1";

/** Resolves when the condition holds; asked again and again. */
export async function until(what: string, condition: () => boolean | Promise<boolean>, timeoutMs = 30_000): Promise<void> {
  const end = performance.now() + timeoutMs;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`not within ${timeoutMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
