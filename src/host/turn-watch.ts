/**
 * Following one turn to its end. Events are lossy and only wake the watch: the end is read from the log, so a host sees
 * exactly one final event, also when it joins late or its connection was away (rule 20).
 */

import type { Cause } from "../domain/errors.ts";
import { HeadfastError } from "../domain/errors.ts";
import { limits } from "../domain/limits.ts";
import { requireOwner, turnState } from "../domain/operations.ts";
import type { Ledger, Queues, TurnEvent } from "../domain/ports.ts";
import type { CancelReason, Entry, Outcome, Turn } from "../domain/records.ts";

/** How a turn ended. */
export interface Ended {
  session: string;
  turnId: string;
  generation: number;
  outcome: Outcome;
  /** What the bot said, where the outcome is done; else "". */
  text: string;
  cause: Cause | null;
  reason: CancelReason | null;
  seq: number;
}

export function endedOf(turn: Turn, entry: Entry): Ended {
  const last = entry.messages.at(-1);
  return {
    session: turn.session,
    turnId: turn.turnId,
    generation: turn.generation,
    outcome: entry.outcome ?? "dead",
    text: entry.outcome === "done" && last?.role === "assistant" ? last.text : "",
    cause: entry.cause,
    reason: entry.reason,
    seq: entry.seq,
  };
}

const finals = new Set<TurnEvent["type"]>(["turn.done", "turn.dead", "turn.cancelled"]);

export class TurnWatch {
  readonly #ledger: Ledger;
  #turn: Turn;
  #ended: Ended | null = null;
  #failure: unknown = null;
  #queue: TurnEvent[] = [];
  #changed: () => void = () => undefined;
  #checking: Promise<void> | null = null;
  #again = false;
  #greeted = false;
  #unsubscribe: () => Promise<void> = async () => undefined;
  readonly #closed = new AbortController();

  private constructor(ledger: Ledger, turn: Turn) {
    this.#ledger = ledger;
    this.#turn = turn;
  }

  /** Subscribes first, then reads: nothing falls in between. */
  static async open(ledger: Ledger, queues: Queues, turn: Turn): Promise<TurnWatch> {
    const watch = new TurnWatch(ledger, turn);
    try {
      watch.#unsubscribe = await queues.events.subscribe(
        turn.session,
        (event) => watch.#heard(event),
        () => watch.#check(),
      );
    } catch (error) {
      if (!(error instanceof HeadfastError) || error.code !== "queue_unavailable") throw error; // without events, the polls find the end
    }
    watch.#check();
    void watch.#poll();
    return watch;
  }

  /** The end. @throws `wait_timeout` */
  async end({ timeoutMs, signal }: { timeoutMs?: number; signal?: AbortSignal } = {}): Promise<Ended> {
    let late = false;
    const timer = new AbortController();
    const expire = (): void => {
      late = true;
      this.#changed();
    };
    signal?.addEventListener("abort", expire, { once: true });
    if (timeoutMs !== undefined) void this.#ledger.system.sleep(timeoutMs, timer.signal).then(() => timer.signal.aborted || expire());
    try {
      while (this.#ended === null) {
        if (this.#failure !== null) throw this.#failure;
        if (late || signal?.aborted)
          throw new HeadfastError("wait_timeout", `turn ${JSON.stringify(this.#turn.turnId)} has no outcome yet; it goes on, wait again`, {
            data: { session: this.#turn.session, turnId: this.#turn.turnId },
          });
        await this.#next();
      }
      return this.#ended;
    } finally {
      timer.abort();
      signal?.removeEventListener("abort", expire);
    }
  }

  async *events(): AsyncGenerator<TurnEvent> {
    let seq = -1;
    for (;;) {
      for (const event of this.#queue.splice(0)) {
        if (event.seq < seq || event.generation !== this.#turn.generation) continue;
        seq = event.seq;
        yield event;
      }
      if (this.#failure !== null) throw this.#failure;
      if (this.#ended !== null) {
        yield finalEvent(this.#ended);
        return;
      }
      await this.#next();
    }
  }

  async close(): Promise<void> {
    this.#closed.abort();
    this.#changed();
    await this.#unsubscribe();
  }

  #next(): Promise<void> {
    return new Promise((resolve) => {
      this.#changed = resolve;
    });
  }

  #heard(event: TurnEvent): void {
    if (event.turnId !== this.#turn.turnId) return;
    if (finals.has(event.type)) this.#check();
    else if (this.#ended === null) this.#queue.push(event);
    this.#changed();
  }

  /** Reads the truth; asked again while it reads, it reads once more. */
  #check(): void {
    this.#again = true;
    this.#checking ??= this.#read().finally(() => {
      this.#checking = null;
      this.#changed();
    });
  }

  async #read(): Promise<void> {
    while (this.#again && this.#ended === null && !this.#closed.signal.aborted) {
      this.#again = false;
      try {
        await this.#readOnce();
      } catch (error) {
        if (!(error instanceof HeadfastError) || error.kind !== "later") this.#failure = error; // an outage: the next poll reads again
      }
    }
  }

  async #readOnce(): Promise<void> {
    const owner = await requireOwner(this.#ledger, this.#turn.session);
    const state = await turnState(this.#ledger, owner, this.#turn);
    if (state.state !== "ended") return this.#waits(state.state);
    if (state.entry.kind !== "reowned") {
      this.#ended = endedOf(this.#turn, state.entry);
      return;
    }
    const next = await this.#ledger.store.turns.byId(this.#turn.session, this.#turn.turnId, this.#turn.generation + 1);
    if (next === undefined) return;
    this.#turn = next; // a re-owned generation is no end: its next one is (rule 20)
    this.#again = true;
  }

  /** Nobody can listen before a turn is sent: that it waits is told to each listener first. */
  #waits(state: "queued" | "running" | "retrying"): void {
    if (this.#greeted) return;
    this.#greeted = true;
    const { session, turnId, generation } = this.#turn;
    if (state !== "running") this.#queue.unshift({ session, turnId, generation, seq: 0, type: "turn.queued", data: {} });
  }

  async #poll(): Promise<void> {
    const { signal } = this.#closed;
    while (!signal.aborted && this.#ended === null) {
      await this.#ledger.system.sleep(limits.waitPollMs, signal);
      if (!signal.aborted) this.#check();
    }
  }
}

function finalEvent(ended: Ended): TurnEvent {
  const { session, turnId, generation, outcome, text, cause, reason, seq } = ended;
  const data = outcome === "done" ? { text } : outcome === "dead" ? { cause } : { reason };
  return { session, turnId, generation, seq, type: `turn.${outcome}`, data: { outcome, ...data } };
}
