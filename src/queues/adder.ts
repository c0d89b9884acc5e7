/** Adding jobs: through BullMQ's own script, several in one round trip, on the connection that does not wait. */
import {
  createIORedisClient,
  createRedisBackend,
  type IRedisTransaction,
  type JobJson,
  type JobsOptions,
  QueueKeys,
  type RedisQueueBackend,
} from "bullmq";
import type { ChainableCommander, Redis } from "ioredis";
import type { SessionId } from "../domain/ids.ts";
import type { System } from "../domain/ports.ts";
import type { RedisLink } from "./connection.ts";
import { activationsQueue, encodeId } from "./names.ts";
import { activationData, activationJob } from "./payloads.ts";

/** One job to add. `data` is JSON text. */
export interface NewJob {
  /** Of the queue's shard. */
  prefix: string;
  queue: string;
  name: string;
  data: string;
  jobId?: string;
  options?: JobsOptions;
}

/** Belt and braces: an activation ends by moves, never by a throw; if it does, it comes again, with a ceiling. */
const activationOptions: JobsOptions = {
  attempts: 1_000_000,
  backoff: { type: "fixed", delay: 5_000, jitter: 0.5 },
  removeOnComplete: true,
  removeOnFail: true,
};

/** The wake-up of a session, for a turn or without. BullMQ makes of any number of them one activation at a time. */
export function activation(prefix: string, session: SessionId, head?: { jobId: string; data: string }): NewJob {
  const options = { ...activationOptions, deduplication: { id: encodeId(session), keepLastIfActive: true } };
  return { prefix, queue: activationsQueue, name: activationJob, data: activationData(session, head), options };
}

export class Adder {
  readonly #link: RedisLink;
  readonly #system: System;
  readonly #backend: RedisQueueBackend;

  constructor(link: RedisLink, system: System) {
    this.#link = link;
    this.#system = system;
    // Only its scripts are used; it neither waits for the connection nor looks at the server.
    this.#backend = createRedisBackend("unused", { connection: link.client, skipWaitingForReady: true, skipVersionCheck: true });
    this.#backend.on("error", () => undefined); // the link tells of its connection
  }

  /** Adds all in order, in one round trip. Adding a job id twice, or an activation that is known, changes nothing. */
  add(doing: string, jobs: readonly NewJob[]): Promise<void> {
    return this.#run(doing, (client) => {
      const pipeline = createIORedisClient(client).pipeline();
      for (const job of jobs) this.#queue(pipeline, job);
      return pipeline;
    });
  }

  /** Adds a job to a queue that has no Worker, in place of the one of the same id, and leaves no events (I10). */
  replace(doing: string, job: NewJob & { jobId: string }): Promise<void> {
    return this.#run(doing, (client) => {
      const queue = `${job.prefix}:${job.queue}:`;
      const multi = createIORedisClient(client).multi();
      multi.lrem(`${queue}wait`, 0, job.jobId).del(`${queue}${job.jobId}`);
      this.#queue(multi, job);
      multi.del(`${queue}events`);
      return multi;
    });
  }

  async #run(doing: string, fill: (client: Redis) => ChainableCommander): Promise<void> {
    await this.#link.run(doing, async (client) => {
      await this.#backend.client;
      for (const [error] of (await fill(client).exec()) ?? []) if (error !== null) throw error;
    });
  }

  #queue(pipeline: ChainableCommander, job: NewJob): void {
    const keys = new QueueKeys(job.prefix).getKeys(job.queue);
    // It queues at once what it answers later.
    void this.#backend.addJobToTransaction(pipeline as unknown as IRedisTransaction, this.#json(job), job.jobId as string, {}, keys);
  }

  #json(job: NewJob): JobJson {
    const options = job.options ?? {};
    const id = options.deduplication?.id;
    return {
      id: job.jobId ?? "",
      name: job.name,
      data: job.data,
      opts: options,
      timestamp: Math.floor(this.#system.now()),
      progress: 0,
      attemptsMade: 0,
      stacktrace: null,
      returnvalue: "null",
      failedReason: "",
      ...(id !== undefined && { deduplicationId: id }),
    } as unknown as JobJson;
  }
}
