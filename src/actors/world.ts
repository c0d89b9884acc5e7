/** What a worker hands to its actors: ports, and the few things that the sessions of one process share. */
import type { BotName, SessionId } from "../domain/ids.ts";
import type { Bot, Queues } from "../domain/ports.ts";
import type { Turn } from "../domain/records.ts";
import type { Assembly } from "./assembly.ts";
import type { WarmCopies } from "./conversation.ts";
import type { Heartbeats } from "./heartbeats.ts";
import type { ProviderGate } from "./provider-gate.ts";
import type { Settlement } from "./settlement.ts";

export interface SessionWorld extends Assembly {
  queues: Queues;
  bots: ReadonlyMap<BotName, Bot>;
  gate: ProviderGate;
  heartbeats: Heartbeats;
  settlement: Settlement;
  warm: WarmCopies;
  stays: Stays;
  /** The one suspect that this process runs (rule 13). */
  suspect: { session: SessionId | null };
  count(what: string): void;
  /** Puts the letter of a dead turn into its queue. Never rejects: the reconciler rebuilds it from the log. */
  letterOf(turn: Turn, seq: number): Promise<void>;
}

/** The stays of this process, so that a signal finds the one it concerns. */
export class Stays {
  readonly #stays = new Map<SessionId, Set<() => void>>();

  /** Answers what ends the entry. */
  enter(session: SessionId, onSignal: () => void): () => void {
    const stays = this.#stays.get(session) ?? new Set();
    stays.add(onSignal);
    this.#stays.set(session, stays);
    return () => {
      stays.delete(onSignal);
      if (stays.size === 0 && this.#stays.get(session) === stays) this.#stays.delete(session);
    };
  }

  get size(): number {
    return this.#stays.size;
  }

  /** Somebody changed the log or left a mark: the holder looks. */
  signal(session: SessionId): void {
    for (const onSignal of this.#stays.get(session) ?? []) onSignal();
  }
}
