/** Dead letters: turns that failed for good, whole, with what led there, ready to be replayed. A view of the log (rule 12). */
import { type Cause, HeadfastError } from "../domain/errors.ts";
import { type BotName, checkBotName, checkId, type SessionId, type TurnId } from "../domain/ids.ts";
import { limits } from "../domain/limits.ts";
import {
  type Actor,
  type DeadTurn,
  deadTurn,
  discardLetter,
  latestGeneration,
  replayLetter,
  requireOwner,
  turnState,
} from "../domain/operations.ts";
import type { Ledger, Queues } from "../domain/ports.ts";
import type { Attempt, Turn } from "../domain/records.ts";
import { bestEffort } from "./best-effort.ts";
import { actorOf, checkOptions, discardOptions, letterOptions, replayOptions } from "./options.ts";
import type { HostSessions } from "./sessions.ts";

export interface DeadLetter {
  session: SessionId;
  turnId: TurnId;
  generation: number;
  number: number;
  bot: BotName;
  cause: Cause;
  attempts: Attempt[];
  crashes: number;
  input: string;
  user?: Turn["user"];
  deliverTo?: string;
  acceptedAt: string;
  deadAt: string;
  worker: string;
  /** The session waits for a replay or a discard. */
  parks: boolean;
  /** Turns of the session behind it that have no outcome yet. */
  waitingBehind: number;
}

export interface Replay {
  session: SessionId;
  turnId: TurnId;
  /** The generation that runs now. */
  generation: number;
  number: number;
  /** Another operator, or an earlier try, had replayed it. */
  already: boolean;
  inRedis: boolean;
}

export class HostDeadLetters {
  readonly #ledger: Ledger;
  readonly #queues: Queues;
  readonly #sessions: HostSessions;

  constructor(ledger: Ledger, queues: Queues, sessions: HostSessions) {
    this.#ledger = ledger;
    this.#queues = queues;
    this.#sessions = sessions;
  }

  /** Oldest first; at most `limit`, 1 to 1,000, 100 where absent. @throws `invalid_input`, `invalid_id` */
  async list(filter: { bot?: BotName; session?: SessionId; limit?: number } = {}): Promise<DeadLetter[]> {
    checkOptions("deadLetters.list", letterOptions, filter);
    if (filter.bot !== undefined) checkBotName(filter.bot);
    if (filter.session !== undefined) checkId("session", filter.session);
    const limit = filter.limit ?? 100;
    const letters: DeadLetter[] = [];
    for (let shard = 0; shard < this.#queues.shards && letters.length < limit; shard += 1) {
      if (filter.session !== undefined && this.#queues.shardOf(filter.session) !== shard) continue;
      for await (const turn of this.#marked(shard)) {
        if (letters.length >= limit) break;
        if ((filter.session !== undefined && turn.session !== filter.session) || (filter.bot !== undefined && turn.bot !== filter.bot))
          continue;
        const letter = await this.#standing(turn);
        if (letter !== null) letters.push(letter);
      }
    }
    return letters;
  }

  /** @throws `dead_letter_not_found`, `turn_not_found`, `session_not_found` */
  async get(session: SessionId, turnId: TurnId): Promise<DeadLetter> {
    const owner = await requireOwner(this.#ledger, checkId("session", session));
    return this.#view(await deadTurn(this.#ledger, owner, checkId("turnId", turnId)));
  }

  /**
   * Opens the turn's next generation: at the tail, or at the head when asked. Twice, by anybody, is one replay.
   * @param options who and why are kept with the turn's next generation. @throws `dead_letter_not_found`, `invalid_input`
   */
  async replay(session: SessionId, turnId: TurnId, options: { position?: "tail" | "head" } & Partial<Actor> = {}): Promise<Replay> {
    checkOptions("deadLetters.replay", replayOptions, options);
    const owner = await requireOwner(this.#ledger, checkId("session", session));
    const dead = await this.#deadOrReplayed(session, turnId);
    if ("replayed" in dead) return { ...nameOf(dead.replayed), already: true, inRedis: await this.#enqueue(dead.replayed) };
    const { turn, already } = await replayLetter(this.#ledger, owner, dead, options.position ?? "tail", actorOf(options));
    await this.#forget(dead.turn);
    return { ...nameOf(turn), already, inRedis: await this.#enqueue(turn) };
  }

  /** The letter is done with. @throws `dead_letter_not_found` */
  async discard(session: SessionId, turnId: TurnId, options: Partial<Actor> = {}): Promise<void> {
    checkOptions("deadLetters.discard", discardOptions, options);
    const owner = await requireOwner(this.#ledger, checkId("session", session));
    const dead = await deadTurn(this.#ledger, owner, checkId("turnId", turnId));
    await discardLetter(this.#ledger, owner, dead, actorOf(options));
    await this.#forget(dead.turn);
    if (dead.entry.parks) await bestEffort(() => this.#queues.wake(session));
  }

  /** A letter that somebody replayed a moment ago is no error for the one who comes second. */
  async #deadOrReplayed(session: SessionId, turnId: TurnId): Promise<DeadTurn | { replayed: Turn }> {
    const owner = await requireOwner(this.#ledger, session);
    try {
      return await deadTurn(this.#ledger, owner, checkId("turnId", turnId));
    } catch (error) {
      if (!(error instanceof HeadfastError) || error.code !== "dead_letter_not_found") throw error;
      const latest = await latestGeneration(this.#ledger, session, turnId);
      const state = await turnState(this.#ledger, owner, latest);
      if (latest.generation === 0 || (state.state === "ended" && state.entry.outcome === "dead")) throw error;
      return { replayed: latest };
    }
  }

  async *#marked(shard: number): AsyncGenerator<Turn> {
    let cursor: string | null = null;
    for (;;) {
      const page: Turn[] = await this.#ledger.store.turns.letters(shard, cursor, limits.reconcilePageMax);
      yield* page;
      const last = page.at(-1);
      if (last === undefined || page.length < limits.reconcilePageMax) return;
      cursor = last.letter;
    }
  }

  async #standing(turn: Turn): Promise<DeadLetter | null> {
    try {
      const letter = await this.get(turn.session, turn.turnId);
      return letter.generation === turn.generation ? letter : null;
    } catch (error) {
      if (error instanceof HeadfastError && error.code === "dead_letter_not_found") return null; // replayed or discarded: the mark lags
      throw error;
    }
  }

  async #view({ turn, entry }: DeadTurn): Promise<DeadLetter> {
    return {
      ...nameOf(turn),
      bot: entry.checkpoint.bot,
      cause: entry.cause ?? { code: "unexpected", message: "" },
      attempts: turn.attempts,
      crashes: turn.crashes,
      input: turn.input,
      ...(turn.user === undefined ? {} : { user: turn.user }),
      ...(turn.deliverTo === undefined ? {} : { deliverTo: turn.deliverTo }),
      acceptedAt: turn.acceptedAt,
      deadAt: entry.at,
      worker: entry.worker,
      parks: entry.parks,
      waitingBehind: await this.#sessions.waitingBehind(turn.session, turn.number),
    };
  }

  #enqueue(turn: Turn): Promise<boolean> {
    return bestEffort(() => this.#queues.enqueue(turn));
  }

  async #forget({ session, turnId, generation }: Turn): Promise<void> {
    await bestEffort(() => this.#queues.letters.remove(session, turnId, generation));
  }
}

function nameOf({ session, turnId, generation, number }: Turn): Pick<Turn, "session" | "turnId" | "generation" | "number"> {
  return { session, turnId, generation, number };
}
