/**
 * The wake-ups of sessions in memory, with the meaning that BullMQ's `deduplication: { id, keepLastIfActive }` has:
 * at most one activation of a session is known at a time; a wake-up while it waits or is delayed is dropped; any
 * number of wake-ups while it runs cause exactly one more run. As with Redis it is not mutual exclusion: a holder that
 * vanished may run on beside the next one, and its end is then refused.
 */
import type { SessionId } from "../domain/ids.ts";
import type { ActivationEnd, QueuedTurn } from "../domain/ports.ts";

/** One known activation. `waiting` ones are in `ready`; `active` ones have a holder. */
export interface PendingActivation {
  session: SessionId;
  /** The identity that a stall is counted under; a new one for each added activation. */
  job: string;
  state: "waiting" | "delayed" | "active";
  /** When a delayed one is due, in milliseconds of the queue's clock. */
  dueAt: number;
  /** A wake-up came while it was active: one more run follows its end. */
  again: boolean;
  /** The turn it was added for: what the first peek of its first stay knows. */
  head: QueuedTurn | undefined;
  /** The same of the one that follows: the last wake-up's. */
  nextHead: QueuedTurn | undefined;
  stalls: number;
  /** How often it was taken. */
  stays: number;
  /** The last stall is explained by a restart of the queue's server. */
  excused: boolean;
  holder: number | null;
}

/** An activation as taken: `holder` is the proof that its end is the current holder's. */
export interface TakenActivation {
  session: SessionId;
  holder: number;
  stall: { job: string; count: number; excused: boolean };
  /** The first stay of this activation. */
  fresh: boolean;
}

export class MemoryActivations {
  /** Every known activation by session. */
  readonly pending = new Map<SessionId, PendingActivation>();
  /** Sessions whose activation waits, first in line first. */
  readonly ready: SessionId[] = [];
  readonly #hints = new Map<SessionId, QueuedTurn>();
  readonly #now: () => number;
  #jobs = 0;
  #holders = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Adds one, or has the running one followed by another; for a turn or without. */
  wake(session: SessionId, head?: QueuedTurn): void {
    const known = this.pending.get(session);
    if (known === undefined) this.#add(session, head);
    else if (known.state === "active") Object.assign(known, { again: true, nextHead: head });
  }

  /** What a first peek is answered with, once; undefined where the queue is to be read. */
  takeHint(session: SessionId): QueuedTurn | undefined {
    const head = this.#hints.get(session);
    this.#hints.delete(session);
    return head;
  }

  /** Ends a delay. Changes nothing where there is none. */
  promote(session: SessionId): void {
    const known = this.pending.get(session);
    if (known?.state === "delayed") this.#queue(known, "back");
  }

  /** The first that is ready now, as taken by a new holder. */
  take(): TakenActivation | undefined {
    this.#promoteDue();
    const session = this.ready.shift();
    const known = session === undefined ? undefined : this.pending.get(session);
    if (known === undefined) return undefined;
    this.#holders += 1;
    known.state = "active";
    known.holder = this.#holders;
    known.stays += 1;
    if (known.stays === 1 && known.head !== undefined) this.#hints.set(known.session, known.head);
    const stall = { job: known.job, count: known.stalls, excused: known.excused };
    return { session: known.session, holder: known.holder, stall, fresh: known.stays === 1 };
  }

  /** Ends a stay. False: the holder is not the current one any more, and nothing changed. */
  finish(session: SessionId, end: ActivationEnd, holder?: number): boolean {
    const known = this.pending.get(session);
    if (known?.state !== "active" || (holder !== undefined && known.holder !== holder)) return false;
    known.holder = null;
    this.#hints.delete(session);
    if (end.kind === "handover") this.#queue(known, "front");
    else if (end.kind === "delay") this.#delay(known, end.ms);
    else this.#end(known, end.kind === "yield");
    return true;
  }

  /** The holder crashed, or lost its lock: the next one is told. It may still be running. */
  vanish(session: SessionId, excused = false): void {
    const known = this.pending.get(session);
    if (known?.state !== "active") return;
    known.holder = null;
    known.stalls += 1;
    known.excused = excused;
    this.#queue(known, "back");
  }

  /** The earliest time at which a delayed one is due. */
  nextDue(): number | undefined {
    let due: number | undefined;
    for (const known of this.pending.values()) {
      if (known.state === "delayed" && (due === undefined || known.dueAt < due)) due = known.dueAt;
    }
    return due;
  }

  clear(): void {
    this.pending.clear();
    this.#hints.clear();
    this.ready.length = 0;
  }

  #add(session: SessionId, head: QueuedTurn | undefined): void {
    this.#jobs += 1;
    const fresh: PendingActivation = {
      session,
      job: `activation-${this.#jobs}`,
      state: "waiting",
      dueAt: 0,
      again: false,
      head,
      nextHead: undefined,
      stalls: 0,
      stays: 0,
      excused: false,
      holder: null,
    };
    this.pending.set(session, fresh);
    this.ready.push(session);
  }

  #queue(known: PendingActivation, where: "front" | "back"): void {
    known.state = "waiting";
    if (where === "front") this.ready.unshift(known.session);
    else this.ready.push(known.session);
  }

  #delay(known: PendingActivation, ms: number): void {
    known.state = "delayed";
    known.dueAt = this.#now() + ms;
  }

  #end(known: PendingActivation, more: boolean): void {
    this.pending.delete(known.session);
    if (more || known.again) this.#add(known.session, more ? undefined : known.nextHead);
  }

  #promoteDue(): void {
    const now = this.#now();
    const due = [...this.pending.values()].filter((known) => known.state === "delayed" && known.dueAt <= now);
    due.sort((a, b) => a.dueAt - b.dueAt);
    for (const known of due) this.#queue(known, "back");
  }
}
