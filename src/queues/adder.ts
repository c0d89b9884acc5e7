/** Adding jobs: through BullMQ's own script, several in one round trip, on the connection that does not wait. */
import {
  createIORedisClient,
  createRedisBackend,
  type IRedisClient,
  type IRedisTransaction,
  type JobJson,
  type JobsOptions,
  QueueKeys,
  type RedisQueueBackend,
} from "bullmq";
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

  /**
   * Adds all in order, in one write: the connection gathers what one turn of the event loop sends. Adding a job id twice,
   * or an activation that is known, changes nothing. No pipeline: making one costs more than what it would send.
   */
  async add(doing: string, jobs: readonly NewJob[]): Promise<void> {
    await this.#link.run(doing, async (client) => {
      await this.#backend.client;
      const commands = createIORedisClient(client);
      for (const end of await Promise.allSettled(jobs.map((job) => this.#queue(commands, job))))
        if (end.status === "rejected") throw end.reason;
    });
  }

  /** Adds a job to a queue that has no Worker, in place of the one of the same id, and leaves no events (I10). */
  async replace(doing: string, job: NewJob & { jobId: string }): Promise<void> {
    await this.#link.run(doing, async (client) => {
      await this.#backend.client;
      const queue = `${job.prefix}:${job.queue}:`;
      const multi = createIORedisClient(client).multi();
      multi.lrem(`${queue}wait`, 0, job.jobId).del(`${queue}${job.jobId}`);
      void this.#queue(multi as unknown as IRedisTransaction, job); // it queues at once what it answers later
      multi.del(`${queue}events`);
      for (const [error] of (await multi.exec()) ?? []) if (error !== null) throw error;
    });
  }

  async #queue(client: IRedisClient | IRedisTransaction, job: NewJob): Promise<void> {
    const keys = new QueueKeys(job.prefix).getKeys(job.queue);
    await this.#backend.addJobToTransaction(client, this.#json(job), job.jobId as string, {}, keys);
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
