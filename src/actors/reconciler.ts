/**
 * The reconciler: what MongoDB says is open against what Redis holds. It reads MongoDB first, only adds, and needs no
 * lock to be safe (rule 17): after a lost wake-up, a lost key or a lost Redis every acknowledged turn is found again
 * (I13), and marks that a crash kept from being flushed are made up for.
 */
import { markAt, uniqueMark } from "../domain/acceptance.ts";
import { hasOutcome } from "../domain/checkpoint.ts";
import { discardedKey, type Tail } from "../domain/entry.ts";
import type { SessionId } from "../domain/ids.ts";
import { limits } from "../domain/limits.ts";
import { readTail } from "../domain/log.ts";
import { outcomeEntry } from "../domain/operations.ts";
import type { Ledger, Letter, Logger, Queues, SettledMark } from "../domain/ports.ts";
import type { Entry, Turn } from "../domain/records.ts";

export interface Repairs {
  turns: number;
  activations: number;
  marks: number;
  letters: number;
}

export class Reconciler {
  readonly #ledger: Ledger;
  readonly #queues: Queues;
  readonly #log: Logger;

  constructor(ledger: Ledger, queues: Queues, log: Logger) {
    this.#ledger = ledger;
    this.#queues = queues;
    this.#log = log;
  }

  /** One pass over every shard. `olderThanMs`: younger turns are still on their way; `null`: look at all. `letters`: rebuild those queues too. */
  async pass(options: { olderThanMs: number | null; letters: boolean }): Promise<Repairs> {
    const repairs: Repairs = { turns: 0, activations: 0, marks: 0, letters: 0 };
    for (let shard = 0; shard < this.#queues.shards; shard += 1) {
      await this.#openTurns(
        shard,
        options.olderThanMs === null ? null : markAt(shard, this.#ledger.system.now() - options.olderThanMs),
        repairs,
      );
      if (options.letters) await this.#letters(shard, repairs);
    }
    if (repairs.turns + repairs.activations + repairs.marks > 0) this.#log.info({ ...repairs }, "the reconciler mended what was missing");
    return repairs;
  }

  async #openTurns(shard: number, before: string | null, repairs: Repairs): Promise<void> {
    let cursor: string | null = null;
    for (;;) {
      const page: Turn[] = await this.#ledger.store.turns.open(shard, cursor, limits.reconcilePageMax);
      const old = page.filter((turn) => before === null || (turn.open !== null && turn.open <= before));
      for (const [session, turns] of bySession(old)) await this.#session(session, turns, repairs);
      const last = page.at(-1);
      if (last === undefined || page.length < limits.reconcilePageMax || old.length < page.length) return;
      cursor = last.open;
    }
  }

  async #session(session: SessionId, turns: readonly Turn[], repairs: Repairs): Promise<void> {
    const owner = await this.#ledger.store.ownership.get(session);
    if (owner === undefined) return;
    const tail = await readTail(this.#ledger.store, owner);
    const { checkpoint } = tail;
    const ended = turns.filter((turn) => hasOutcome(checkpoint, turn.number) && checkpoint.owed?.turnId !== turn.turnId);
    const marks = await Promise.all(ended.map((turn) => this.#markOf(turn, tail)));
    if (marks.length > 0) await this.#ledger.store.turns.settle(marks);
    repairs.marks += marks.length;
    const left = turns.filter((turn) => !hasOutcome(checkpoint, turn.number));
    const parked = checkpoint.parked;
    const runnable = parked === null || left.some((turn) => turn.turnId === parked.turnId && turn.generation === parked.generation + 1);
    if (checkpoint.owed !== null) await this.#queues.wake(session); // whoever runs it rolls the re-own forward
    if (left.length === 0 || !runnable) return; // rule 18: a parked session is left alone
    const mended = await this.#queues.repair(session, left);
    repairs.turns += mended.turns;
    repairs.activations += mended.activations;
  }

  async #markOf(turn: Turn, tail: Tail): Promise<SettledMark> {
    const entry = await outcomeEntry(this.#ledger, turn, tail);
    const letter = (await this.#isLetter(turn, entry)) ? uniqueMark(this.#queues.shardOf(turn.session), this.#ledger.system) : null;
    return { session: turn.session, number: turn.number, outcome: entry.outcome ?? "dead", outcomeSeq: entry.seq, letter };
  }

  /** Dead, no later generation, not discarded (rule 12). */
  async #isLetter(turn: Turn, entry: Entry): Promise<boolean> {
    if (entry.outcome !== "dead" || entry.kind === "reowned") return false;
    const { store } = this.#ledger;
    if ((await store.turns.byId(turn.session, turn.turnId, turn.generation + 1)) !== undefined) return false;
    return (await store.log.byKey(turn.session, discardedKey(turn.turnId, turn.generation))) === undefined;
  }

  async #letters(shard: number, repairs: Repairs): Promise<void> {
    let cursor: string | null = null;
    for (;;) {
      const page: Turn[] = await this.#ledger.store.turns.letters(shard, cursor, limits.reconcilePageMax);
      for (const turn of page) {
        const entry = turn.outcomeSeq === null ? undefined : await this.#ledger.store.log.get(turn.session, turn.outcomeSeq);
        await this.#queues.letters.put(letterFrom(turn, entry));
        repairs.letters += 1;
      }
      const last = page.at(-1);
      if (last === undefined || page.length < limits.reconcilePageMax) return;
      cursor = last.letter;
    }
  }
}

function bySession(turns: readonly Turn[]): Map<SessionId, Turn[]> {
  const sessions = new Map<SessionId, Turn[]>();
  for (const turn of turns) sessions.set(turn.session, [...(sessions.get(turn.session) ?? []), turn]);
  return sessions;
}

/** The whole turn with its history, as it lies in the dead-letter queue. */
export function letterFrom(turn: Turn, entry: Entry | undefined): Letter {
  const { session, turnId, generation } = turn;
  return {
    session,
    turnId,
    generation,
    payload: { turn, cause: entry?.cause ?? null, at: entry?.at ?? null, worker: entry?.worker ?? null },
  };
}
