/** Queues on a Redis for one test: a namespace of its own, removed with all its keys. */
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { limits } from "../../src/domain/limits.ts";
import type { System } from "../../src/domain/ports.ts";
import { activationsQueue, shardPrefix, turnsQueue } from "../../src/queues/names.ts";
import { openQueues, type RedisQueues } from "../../src/queues/queues.ts";
import { realSystem } from "../../src/system.ts";
import { quiet } from "./queue-records.ts";
import { keysOf } from "./redis.ts";
import { uniqueName } from "./services.ts";

export class RedisWorld {
  readonly namespace = uniqueName("test");
  readonly url: string;
  /** A client that looks from outside. */
  readonly client: Redis;
  readonly #opened: { close(): Promise<unknown> }[] = [];

  constructor(url: string) {
    this.url = url;
    this.client = new Redis(url, { maxRetriesPerRequest: null });
    this.client.on("error", () => undefined);
  }

  /** Queues as a process of its own would have them. */
  async open(options: { system?: System; shards?: number } = {}): Promise<RedisQueues> {
    const { system = realSystem, shards = 1 } = options;
    const queues = await openQueues({ url: this.url, namespace: this.namespace, shards, system, log: quiet });
    this.#opened.push(queues);
    return queues;
  }

  /** As `open`, but to these queues the server has run for long, however young it is: no restart excuses a stall. */
  async openAged(): Promise<RedisQueues> {
    const system = skippingSystem();
    const queues = await this.open({ system });
    system.forward(limits.restartGraceMs + 1);
    return queues;
  }

  get prefix(): string {
    return shardPrefix(this.namespace, 0);
  }

  /** Any queue of shard 0, through BullMQ's public API. */
  queue(name: string): Queue {
    const queue = new Queue(name, { connection: this.client, prefix: this.prefix });
    this.#opened.push(queue);
    return queue;
  }

  turns(session: string): Queue {
    return this.queue(turnsQueue(session));
  }

  get activations(): Queue {
    return this.queue(activationsQueue);
  }

  /** Keys of shard 0, without its prefix; `part` filters. */
  async keys(part = ""): Promise<string[]> {
    const keys = await keysOf(this.client, this.namespace);
    return keys.map((key) => key.slice(this.prefix.length + 1)).filter((key) => key.includes(part));
  }

  async dispose(): Promise<void> {
    for (const one of this.#opened.reverse()) await one.close();
    const keys = await keysOf(this.client, this.namespace);
    if (keys.length > 0) await this.client.del(keys);
    this.client.disconnect();
  }
}

/** A real system whose clocks can be set forward. */
export function skippingSystem(): System & { forward(ms: number): void } {
  let ahead = 0;
  return {
    ...realSystem,
    monotonic: () => realSystem.monotonic() + ahead,
    forward(ms) {
      ahead += ms;
    },
  };
}
