/** What a host does with turns: send, wait, follow, cancel. */
import { checkTurnRequest, claimSession, freshTurn, placeTurn, type TurnRequest } from "../domain/acceptance.ts";
import { HeadfastError } from "../domain/errors.ts";
import { checkId, type SessionId, type TurnId } from "../domain/ids.ts";
import { limits } from "../domain/limits.ts";
import { cancelTurn, latestGeneration, requireOwner, turnState } from "../domain/operations.ts";
import type { Ledger, Queues, TurnEvent } from "../domain/ports.ts";
import type { Outcome, Turn } from "../domain/records.ts";
import { bestEffort } from "./best-effort.ts";
import { checkOptions, waitOptions } from "./options.ts";
import { type Ended, endedOf, TurnWatch } from "./turn-watch.ts";

/** A turn as a host names it later. */
export interface TurnName {
  session: SessionId;
  turnId: TurnId;
  /** The latest where absent. */
  generation?: number;
}

export interface Sent {
  session: SessionId;
  turnId: TurnId;
  generation: number;
  /** Its place in the session's order. */
  number: number;
  state: "queued" | "running" | "retrying" | "ended";
  /** The same turnId was accepted before: this is that turn. */
  duplicate: boolean;
  outcome?: Outcome;
  /**
   * False where Redis did not take it within 250 ms: it is acknowledged all the same, and the reconciler adds it. True where
   * nothing is left to be taken: the turn has ended.
   */
  inRedis: boolean;
}

export class HostTurns {
  readonly #ledger: Ledger;
  readonly #queues: Queues;
  /** The last number known to stand, per session: saves reads, never decides. */
  readonly #lastNumbers = new Map<SessionId, number>();

  constructor(ledger: Ledger, queues: Queues) {
    this.#ledger = ledger;
    this.#queues = queues;
  }

  /**
   * Accepts a turn: once this resolves, it has exactly one outcome, whatever fails (I4, I13). Sending the same turnId
   * again is harmless and answers `duplicate`. Claims an unknown session for the bot. Ends within `limits.sendMsMax` (10 s),
   * whatever the servers do; after `store_unavailable` the turn may or may not have been accepted, and sending the same
   * again settles it.
   * @throws `invalid_id`, `invalid_input`, `input_too_large`, `ownership_conflict`, `turn_id_reused`, `store_unavailable`
   */
  async send(request: TurnRequest): Promise<Sent> {
    return this.#promptly(this.#accept(checkTurnRequest(request)));
  }

  async #accept(checked: TurnRequest): Promise<Sent> {
    const remembered = this.#lastNumbers.get(checked.session);
    const owner = await claimSession(this.#ledger, checked.session, checked.bot, {}, remembered !== undefined);
    const fresh = freshTurn(this.#ledger, checked, 0);
    const lastKnown = Math.max(owner.lastNumber, remembered ?? 0);
    const { turn, duplicate } = await placeTurn(this.#ledger, fresh, lastKnown);
    this.#remember(checked.session, turn.number);
    if (duplicate) return this.#again(turn, fresh.inputSha256);
    const inRedis = await this.#enqueue(turn);
    return { ...nameOf(turn), number: turn.number, state: "queued", duplicate: false, inRedis };
  }

  /**
   * Resolves with the outcome; follows a re-owned turn to its next generation.
   * @param options `timeoutMs`: give up waiting after so many milliseconds (the turn goes on); absent: wait without end.
   * @throws `wait_timeout`, `turn_not_found`, `session_not_found`, `invalid_input`
   */
  async wait(turn: TurnName, options: { timeoutMs?: number; signal?: AbortSignal } = {}): Promise<Ended> {
    checkName(turn);
    checkOptions("turns.wait", waitOptions, options);
    const began = this.#ledger.system.monotonic();
    const watch = await this.#patiently(() => this.#watch(turn), options);
    const { timeoutMs } = options;
    const left = timeoutMs === undefined ? {} : { timeoutMs: Math.max(0, timeoutMs - (this.#ledger.system.monotonic() - began)) };
    try {
      return await watch.end({ ...options, ...left });
    } finally {
      await watch.close();
    }
  }

  /** What happens to the turn, from now on; ends with exactly one of `turn.done`, `turn.dead`, `turn.cancelled`. */
  async *events(turn: TurnName): AsyncGenerator<TurnEvent> {
    checkName(turn);
    const watch = await this.#watch(turn);
    try {
      yield* watch.events();
    } finally {
      await watch.close();
    }
  }

  /** Its state, and its outcome where it has one. @throws `turn_not_found` */
  async get(name: TurnName): Promise<{ turn: Turn; state: "queued" | "running" | "retrying" | "ended"; ended?: Ended }> {
    checkName(name);
    const owner = await requireOwner(this.#ledger, name.session);
    const turn = await this.#find(name);
    const state = await turnState(this.#ledger, owner, turn);
    return state.state === "ended" ? { turn, state: "ended", ended: endedOf(turn, state.entry) } : { turn, state: state.state };
  }

  /**
   * Ends a turn that waits or runs. `outcome: null`: it runs with recorded steps, and its holder will end it at its
   * next step. One that has an outcome keeps it.
   */
  async cancel(name: TurnName): Promise<{ outcome: Outcome | null }> {
    checkName(name);
    const owner = await requireOwner(this.#ledger, name.session);
    const turn = await this.#find(name);
    const cancelled = await cancelTurn(this.#ledger, owner, turn, "user");
    this.#queues.events.signal(turn.session);
    if (cancelled.outcome === "cancelled") this.#publish(turn, "turn.cancelled", { reason: "user" }, cancelled.entry.seq);
    await bestEffort(async () => {
      await this.#queues.wake(turn.session);
      await this.#queues.promote(turn.session); // one that waits for a back-off goes on at once
    });
    return { outcome: cancelled.outcome };
  }

  /** What was begun goes on behind a caller who was told that it takes too long. */
  async #promptly(sending: Promise<Sent>): Promise<Sent> {
    const done = new AbortController();
    const late = this.#ledger.system.sleep(limits.sendMsMax, done.signal).then(() => null);
    try {
      const sent = await Promise.race([sending, late]);
      if (sent !== null) return sent;
    } finally {
      done.abort(null);
    }
    throw new HeadfastError(
      "store_unavailable",
      `MongoDB did not answer within ${limits.sendMsMax / 1000} s; the turn may or may not have been accepted, send it again with the same turnId`,
    );
  }

  async #again(standing: Turn, inputSha256: string): Promise<Sent> {
    if (standing.inputSha256 !== inputSha256) {
      throw new HeadfastError(
        "turn_id_reused",
        `session ${JSON.stringify(standing.session)} has another input under the turnId ${JSON.stringify(standing.turnId)}; a new message needs a new id`,
        { data: { session: standing.session, turnId: standing.turnId } },
      );
    }
    const turn = await latestGeneration(this.#ledger, standing.session, standing.turnId, standing.generation);
    const state = await turnState(this.#ledger, await requireOwner(this.#ledger, turn.session), turn);
    const sent = { ...nameOf(turn), number: turn.number, duplicate: true };
    if (state.state === "ended") return { ...sent, state: "ended", outcome: state.entry.outcome ?? "dead", inRedis: true };
    return { ...sent, state: state.state, inRedis: await this.#enqueue(turn) }; // duplicates heal (rule 14)
  }

  /** At most `limits.redisSendMsMax`: MongoDB has the turn, so a slow or absent Redis holds nobody up (I13). */
  async #enqueue(turn: Turn): Promise<boolean> {
    const late = new AbortController();
    const added = this.#queues.enqueue(turn).then(
      () => true,
      () => false, // acknowledged all the same: the reconciler adds it
    );
    const timeout = this.#ledger.system.sleep(limits.redisSendMsMax, late.signal).then(() => false);
    const inRedis = await Promise.race([added, timeout]);
    late.abort(null); // a reason of our own: the default one is an error with a stack
    return inRedis;
  }

  /** An outage is waited out, as long as the caller would wait for the turn. */
  async #patiently<T>(work: () => Promise<T>, { timeoutMs, signal }: { timeoutMs?: number; signal?: AbortSignal }): Promise<T> {
    const { system } = this.#ledger;
    const until = system.monotonic() + (timeoutMs ?? Number.POSITIVE_INFINITY);
    for (;;) {
      try {
        return await work();
      } catch (error) {
        if (!(error instanceof HeadfastError) || error.kind !== "later" || signal?.aborted || system.monotonic() >= until) throw error;
        await system.sleep(limits.outageMsMin, signal);
      }
    }
  }

  async #watch(name: TurnName): Promise<TurnWatch> {
    const turn = await this.#find(name);
    return TurnWatch.open(this.#ledger, this.#queues, turn);
  }

  async #find(name: TurnName): Promise<Turn> {
    if (name.generation === undefined) return latestGeneration(this.#ledger, name.session, name.turnId);
    const turn = await this.#ledger.store.turns.byId(name.session, name.turnId, name.generation);
    if (turn !== undefined) return turn;
    throw new HeadfastError(
      "turn_not_found",
      `no turn ${JSON.stringify(name.turnId)} of generation ${name.generation} in session ${JSON.stringify(name.session)}`,
      { data: { ...name } },
    );
  }

  #publish(turn: Turn, type: TurnEvent["type"], data: Record<string, unknown>, seq = 0): void {
    this.#queues.events.publish({ ...nameOf(turn), seq, type, data });
  }

  #remember(session: SessionId, number: number): void {
    this.#lastNumbers.delete(session);
    this.#lastNumbers.set(session, number);
    if (this.#lastNumbers.size <= limits.sessionsRememberedMax) return;
    const [oldest] = this.#lastNumbers.keys();
    if (oldest !== undefined) this.#lastNumbers.delete(oldest);
  }
}

/** @throws `invalid_input`, `invalid_id` */
function checkName(name: TurnName): void {
  if (name === null || typeof name !== "object")
    throw new HeadfastError("invalid_input", "a turn is named by an object { session, turnId, generation? }");
  checkId("session", name.session);
  checkId("turnId", name.turnId);
  if (name.generation !== undefined && (!Number.isSafeInteger(name.generation) || name.generation < 0))
    throw new HeadfastError("invalid_input", "generation must be a whole number from 0 on", { data: { field: "generation" } });
}

function nameOf(turn: Turn): Required<TurnName> {
  return { session: turn.session, turnId: turn.turnId, generation: turn.generation };
}
