/**
 * Activations: the wake-ups of sessions, run by one ordinary BullMQ Worker per shard. BullMQ's single activation only
 * saves work; after an outage two stays may overlap, so a lease is also kept by the clock and a second stay in one
 * process waits for the first. The processor never throws but `DelayedError` and `WaitingError`, which spend no attempt.
 */
import { DelayedError, type Job, WaitingError, type WorkerOptions } from "bullmq";
import { asHeadfastError } from "../domain/errors.ts";
import type { SessionId } from "../domain/ids.ts";
import { limits } from "../domain/limits.ts";
import type { ActivationEnd, ActivationHandler, ActivationRunner, Lease, Logger, System } from "../domain/ports.ts";
import type { RedisLink } from "./connection.ts";
import { Crew, CrewWorker, workerOptions } from "./crew.ts";
import type { Mailbox } from "./mailbox.ts";
import { activationsQueue } from "./names.ts";
import { activationJob, readActivation, readHead } from "./payloads.ts";
import type { Stay } from "./stay.ts";
import type { Stays } from "./stays.ts";

/** What a runner needs of the queues. */
export interface ActivationWorld {
  link: RedisLink;
  system: System;
  log: Logger;
  /** BullMQ's prefix of each shard. */
  prefixes: readonly string[];
  wake(session: SessionId): Promise<void>;
  mailbox: Mailbox;
}

export class Activations implements ActivationRunner {
  readonly #world: ActivationWorld;
  readonly #handler: ActivationHandler;
  readonly #stays: Stays;
  readonly #crew: Crew;
  #closing: Promise<void> | undefined;

  /** @param stays those of this process: shared by its runners */
  constructor(world: ActivationWorld, stays: Stays, handler: ActivationHandler, concurrency: number) {
    this.#world = world;
    this.#handler = handler;
    this.#stays = stays;
    this.#crew = new Crew(world.system, world.link.patient());
    for (const prefix of world.prefixes)
      this.#crew.add((connection) => this.#worker({ ...workerOptions, connection, prefix, concurrency }));
  }

  /** Takes nothing new; aborts with `draining` what still runs after `drainMs`; resolves when all have returned. */
  close(drainMs: number): Promise<void> {
    this.#closing ??= this.#crew.close(drainMs, () => this.#stays.drain());
    return this.#closing;
  }

  #worker(options: WorkerOptions): CrewWorker {
    const { system, log } = this.#world;
    const stay = (job: Job, token: string): Promise<void> => this.#stay(job, token);
    const worker = new CrewWorker(activationsQueue, stay, options, system, (...renewal) => this.#stays.renewed(...renewal));
    worker.on("error", (error) => log.debug({ err: error }, "activations worker"));
    return worker;
  }

  async #stay(job: Job, token: string): Promise<void> {
    const session = readActivation(job.data);
    const id = job.id as string;
    if (job.name !== activationJob || session === undefined) {
      this.#world.log.warn({ job: id, name: job.name }, "an activation without a session is dropped");
      return;
    }
    const stay = this.#stays.begin(session, id, job.stalledCounter);
    if (stay === undefined) return this.#later(job, token, limits.besideMs);
    if (job.attemptsStarted <= 1) this.#world.mailbox.hint(session, readHead(job.data));
    const end = await this.#handled(job, stay);
    this.#world.mailbox.hint(session, undefined);
    if (stay.ended?.code === "lease_lost") return this.#endLost(stay);
    this.#stays.end(stay, end.kind === "idle" || end.kind === "yield");
    await this.#finish(job, token, session, end);
  }

  async #handled(job: Job, stay: Stay): Promise<ActivationEnd> {
    try {
      return await this.#crew.busy(this.#handler(this.#lease(job, stay)));
    } catch (error) {
      const { code, message } = asHeadfastError(error);
      this.#world.log.error(
        { err: error, session: stay.session, code },
        "an activation broke without saying how it ends; it is tried again",
      );
      return { kind: "delay", ms: limits.outageMsMax, reason: message };
    }
  }

  #lease({ stalledCounter: count, attemptsStarted, timestamp }: Job, stay: Stay): Lease {
    const excused = count > 0 && (this.#world.link.restartedSince(timestamp) || this.#stays.ownStall(stay));
    return {
      session: stay.session,
      get signal() {
        return stay.signal;
      },
      stall: { job: stay.job, count, excused },
      fresh: attemptsStarted <= 1,
    };
  }

  /** How the handler's end becomes BullMQ's: return, move and throw, or add and return. */
  async #finish(job: Job, token: string, session: SessionId, end: ActivationEnd): Promise<void> {
    if (end.kind === "idle") return;
    if (end.kind === "delay") return this.#later(job, token, end.ms);
    if (end.kind === "handover") return handOver(job, token);
    const added = await this.#wakeAgain(session);
    if (!added) return this.#later(job, token, limits.outageMsMin);
  }

  /**
   * The job may be another's by now, or still ours: whichever it is, one more run is asked for, and nothing else is
   * touched. The session stays taken for a moment, so that BullMQ stops to track this stay before it tracks the next.
   */
  async #endLost(stay: Stay): Promise<void> {
    await this.#wakeAgain(stay.session);
    void this.#world.system.sleep(limits.besideMs).then(() => this.#stays.end(stay, false));
  }

  async #wakeAgain(session: SessionId): Promise<boolean> {
    try {
      await this.#world.wake(session);
      return true;
    } catch (error) {
      this.#world.log.debug({ err: error, session }, "an activation could not ask for the next; the reconciler will");
      return false;
    }
  }

  async #later(job: Job, token: string, ms: number): Promise<never> {
    await job.moveToDelayed(Math.ceil(this.#world.system.now() + ms), token);
    throw new DelayedError();
  }
}

/** To the front of the line, no attempt spent. */
async function handOver(job: Job, token: string): Promise<never> {
  await job.moveToWait(token);
  throw new WaitingError();
}
