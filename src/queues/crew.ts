/** BullMQ Workers that share a connection and are closed together, within a bounded time also where Redis is away. */
import { type Job, Worker, type WorkerOptions } from "bullmq";
import { limits } from "../domain/limits.ts";
import type { System } from "../domain/ports.ts";
import type { PatientRedis } from "./connection.ts";

/** Shared by all Workers of Headfast: no throttle, no limit on stalls (crashes have a limit of their own), nothing kept. */
export const workerOptions = {
  lockDuration: limits.lockMs,
  lockRenewTime: limits.lockRenewMs,
  stalledInterval: limits.stalledCheckMs,
  maxStalledCount: 1e9,
  removeOnComplete: { count: 0 },
  removeOnFail: { count: 0 },
} as const;

/** Told of each renewal of locks, with the time at which it was asked for: a late answer must not lengthen a lease. */
export type OnRenewed = (jobs: readonly string[], lost: readonly string[], askedAt: number) => void;

export class CrewWorker extends Worker {
  readonly #system: System;
  readonly #onRenewed: OnRenewed;

  constructor(
    queue: string,
    processor: (job: Job, token: string) => Promise<void>,
    options: WorkerOptions,
    system: System,
    onRenewed: OnRenewed = () => undefined,
  ) {
    super(queue, (job: Job, token?: string) => processor(job, token as string), options);
    this.#system = system;
    this.#onRenewed = onRenewed;
  }

  override async extendJobLocks(jobIds: string[], tokens: string[], duration: number): Promise<string[]> {
    const askedAt = this.#system.monotonic();
    const lost = await super.extendJobLocks(jobIds, tokens, duration);
    this.#onRenewed(jobIds, lost, askedAt);
    return lost;
  }

  /** BullMQ waits for an `end` of its blocking connection that does not come while it reconnects: stop what is left. */
  abandon(): void {
    void this.lockManager.close();
  }
}

export class Crew {
  readonly #system: System;
  readonly #client: PatientRedis;
  readonly #workers: CrewWorker[] = [];
  #running = 0;
  #onIdle: (() => void) | undefined;

  /** @param client is the crew's own */
  constructor(system: System, client: PatientRedis) {
    this.#system = system;
    this.#client = client;
  }

  add(make: (connection: PatientRedis) => CrewWorker): void {
    this.#workers.push(make(this.#client));
  }

  /** What a closing crew waits for: the work itself, not what BullMQ has to tell Redis of it. */
  async busy<T>(work: Promise<T>): Promise<T> {
    this.#running += 1;
    try {
      return await work;
    } finally {
      this.#running -= 1;
      if (this.#running === 0) this.#onIdle?.();
    }
  }

  /** Takes nothing new; calls `late` for what still runs after `drainMs`; resolves when all work has returned. */
  async close(drainMs: number, late: () => void): Promise<void> {
    const closed = Promise.all(this.#workers.map((worker) => worker.close()));
    await this.#within(this.#idle(), drainMs);
    late();
    await this.#idle();
    // What is still to be told to Redis waits for it: not for ever.
    await this.#within(closed, limits.redisCloseMsMax);
    this.#client.cut();
    for (const worker of this.#workers) worker.abandon();
  }

  #idle(): Promise<void> {
    if (this.#running === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onIdle = resolve;
    });
  }

  /** True if it settled in time. */
  async #within(done: Promise<unknown>, ms: number): Promise<boolean> {
    const late = new AbortController();
    const settled = done.then(
      () => true,
      () => true,
    );
    const inTime = await Promise.race([settled, this.#system.sleep(ms, late.signal).then(() => false)]);
    late.abort();
    return inTime;
  }
}
