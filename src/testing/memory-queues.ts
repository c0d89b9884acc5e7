/**
 * The `Queues` port in memory, for programs without Redis and for the simulator. Every operation applies before its
 * promise is answered, so that whoever drives it decides each interleaving.
 */
import { type SessionId, type TurnId, turnKey } from "../domain/ids.ts";
import { limits } from "../domain/limits.ts";
import type { ActivationEnd, ActivationHandler, ActivationRunner, QueuedTurn, Queues, RefusedJob, System } from "../domain/ports.ts";
import type { Turn } from "../domain/records.ts";
import { MemoryActivations, type TakenActivation } from "./memory-activations.ts";
import { MemoryEvents } from "./memory-events.ts";
import { MemoryInbox, MemoryLetters, MemoryObservations } from "./memory-outboxes.ts";
import { MemoryRunner } from "./memory-runner.ts";

/** The jobs of one session in order, by job id. */
export type MemoryMailbox = Map<string, QueuedTurn | RefusedJob>;

/** @param options `shards`: how many the sessions are spread over, 1 unless told. */
export function memoryQueues(options: { system: System; shards?: number }): MemoryQueues {
  return new MemoryQueues(options.system, options.shards ?? 1);
}

export class MemoryQueues implements Queues {
  readonly shards: number;
  /** Raw: the turn queues. A session without jobs has no entry (I10). */
  readonly mailboxes = new Map<SessionId, MemoryMailbox>();
  /** Raw: the wake-ups. */
  readonly activations: MemoryActivations;
  readonly inbox = new MemoryInbox();
  readonly letters = new MemoryLetters();
  readonly observations = new MemoryObservations();
  readonly events = new MemoryEvents();
  readonly #system: System;
  readonly #runners = new Set<MemoryRunner>();
  readonly #restarts: (() => void)[] = [];

  constructor(system: System, shards: number) {
    this.#system = system;
    this.shards = shards;
    this.activations = new MemoryActivations(() => system.now());
  }

  shardOf(session: SessionId): number {
    let sum = 0;
    for (let index = 0; index < session.length; index += 1) sum = (sum * 31 + session.charCodeAt(index)) >>> 0;
    return sum % this.shards;
  }

  now(): number {
    return this.#system.now();
  }

  connected(): boolean {
    return true;
  }

  async enqueue(turn: Turn): Promise<void> {
    this.#addTurn(turn);
    this.#wake(turn.session, queuedTurn(this.jobId(turn.turnId, turn.generation), turn));
  }

  async wake(session: SessionId): Promise<void> {
    this.#wake(session);
  }

  async promote(session: SessionId): Promise<void> {
    this.activations.promote(session);
    this.#changed();
  }

  async peek(session: SessionId): Promise<(QueuedTurn | RefusedJob)[]> {
    const hint = this.activations.takeHint(session);
    return hint === undefined ? this.#heads(session) : [hint];
  }

  async settle(session: SessionId, jobIds: readonly string[]): Promise<(QueuedTurn | RefusedJob)[]> {
    this.activations.takeHint(session);
    const mailbox = this.mailboxes.get(session);
    for (const jobId of jobIds) mailbox?.delete(jobId);
    if (mailbox?.size === 0) this.mailboxes.delete(session); // I10
    return this.#heads(session);
  }

  jobId(turnId: TurnId, generation: number): string {
    return turnKey(turnId, generation);
  }

  async repair(session: SessionId, turns: readonly Turn[]): Promise<{ turns: number; activations: number }> {
    const added = turns.filter((turn) => this.#addTurn(turn)).length;
    const activations = this.activations.pending.has(session) ? 0 : 1;
    if (activations === 1) this.#wake(session);
    return { turns: added, activations };
  }

  async work(handler: ActivationHandler, options: { concurrency: number }): Promise<ActivationRunner> {
    const runner = new MemoryRunner(this.activations, this.#system, handler, options.concurrency, () => this.#changed());
    this.#runners.add(runner);
    runner.pump();
    return {
      close: async (drainMs) => {
        await runner.close(drainMs);
        this.#runners.delete(runner);
        this.#changed();
      },
    };
  }

  onRestart(listener: () => void): void {
    this.#restarts.push(listener);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#runners].map((runner) => runner.close(0)));
    this.#runners.clear();
    await this.observations.close();
  }

  // ── what the simulator does by hand ──────────────────────────────────────────────────────────────

  /** A job as another client would add it: nobody is woken. */
  inject(session: SessionId, job: QueuedTurn | RefusedJob): void {
    const mailbox = this.#mailbox(session);
    if (!mailbox.has(job.jobId)) mailbox.set(job.jobId, job);
  }

  /** Takes the first activation that is ready now, without a worker loop. */
  takeReady(): TakenActivation | undefined {
    return this.activations.take();
  }

  /** Ends a stay. Without a `holder` the current one's; false if that is no longer the holder. */
  finish(session: SessionId, end: ActivationEnd, holder?: number): boolean {
    const applied = this.activations.finish(session, end, holder);
    this.#changed();
    return applied;
  }

  /** The holder crashed or lost its lock: ready again, with one stall more. The old holder may run on. */
  vanish(session: SessionId, excused = false): void {
    this.activations.vanish(session, excused);
    this.#changed();
  }

  /** Redis is lost whole and comes back empty. */
  empty(): void {
    this.mailboxes.clear();
    this.activations.clear();
    this.inbox.items.clear();
    this.letters.kept.clear();
    this.observations.clear();
    for (const listener of this.#restarts) listener();
    this.events.reconnected();
  }

  #wake(session: SessionId, head?: QueuedTurn): void {
    this.activations.wake(session, head);
    this.#changed();
  }

  #changed(): void {
    for (const runner of this.#runners) runner.pump();
  }

  #heads(session: SessionId): (QueuedTurn | RefusedJob)[] {
    return [...(this.mailboxes.get(session)?.values() ?? [])].slice(0, limits.peekMax);
  }

  #addTurn(turn: Turn): boolean {
    const mailbox = this.#mailbox(turn.session);
    const jobId = this.jobId(turn.turnId, turn.generation);
    if (mailbox.has(jobId)) return false;
    mailbox.set(jobId, queuedTurn(jobId, turn));
    return true;
  }

  #mailbox(session: SessionId): MemoryMailbox {
    const mailbox = this.mailboxes.get(session) ?? new Map();
    this.mailboxes.set(session, mailbox);
    return mailbox;
  }
}

function queuedTurn(jobId: string, turn: Turn): QueuedTurn {
  return {
    jobId,
    turnId: turn.turnId,
    generation: turn.generation,
    number: turn.number,
    bot: turn.bot,
    ...(Buffer.byteLength(turn.input) <= limits.inlineInputBytesMax ? { input: turn.input } : {}),
    ...(turn.user === undefined ? {} : { user: turn.user }),
    ...(turn.deliverTo === undefined ? {} : { deliverTo: turn.deliverTo }),
    ...(turn.traceparent === undefined ? {} : { traceparent: turn.traceparent }),
  };
}
