/**
 * What hosts and operators do to turns and sessions, by entries of the log: outcomes, cancel, re-own, replay, discard.
 * Every one may be repeated after a lost answer, and by two operators at once, without a second effect (I4).
 */
import { type Accepted, freshTurn, placeTurn } from "./acceptance.ts";
import { hasOutcome, unparked, withNext, withOutcome } from "./checkpoint.ts";
import { type Draft, discardedKey, type Tail } from "./entry.ts";
import { HeadfastError } from "./errors.ts";
import type { BotName, SessionId, TurnId } from "./ids.ts";
import { limits } from "./limits.ts";
import { appendDecided, readTail } from "./log.ts";
import type { Ledger } from "./ports.ts";
import type { CancelReason, Entry, Outcome, Ownership, Turn } from "./records.ts";

/** Who acts, for the entry. */
export interface Actor {
  /** A person or program, as the log shall show it. */
  by: string;
  why?: string;
}

export type TurnState = { state: "queued" | "running" | "retrying" } | { state: "ended"; entry: Entry };

export async function requireOwner(ledger: Ledger, session: SessionId): Promise<Ownership> {
  const owner = await ledger.store.ownership.get(session);
  if (owner === undefined) throw new HeadfastError("session_not_found", `no session ${JSON.stringify(session)}`, { data: { session } });
  return owner;
}

/** The latest generation of a turn. @throws `turn_not_found` */
export async function latestGeneration(ledger: Ledger, session: SessionId, turnId: TurnId, from = 0): Promise<Turn> {
  let latest = await ledger.store.turns.byId(session, turnId, from);
  if (latest === undefined)
    throw new HeadfastError("turn_not_found", `no turn ${JSON.stringify(turnId)} in session ${JSON.stringify(session)}`, {
      data: { session, turnId },
    });
  for (;;) {
    const next = await ledger.store.turns.byId(session, turnId, latest.generation + 1);
    if (next === undefined) return latest;
    latest = next;
  }
}

/** What the log says of a turn. */
export async function turnState(ledger: Ledger, owner: Ownership, turn: Turn): Promise<TurnState> {
  const tail = await readTail(ledger.store, owner);
  if (hasOutcome(tail.checkpoint, turn.number)) return { state: "ended", entry: await outcomeEntry(ledger, turn, tail) };
  if (tail.checkpoint.open?.number === turn.number) return { state: "running" };
  return { state: turn.attemptsSpent > 0 ? "retrying" : "queued" };
}

/** The entry that holds a turn's outcome: by the hint on its document, else backwards from the tail. */
export async function outcomeEntry(ledger: Ledger, turn: Turn, tail: Tail): Promise<Entry> {
  if (turn.outcomeSeq !== null) {
    const hinted = await ledger.store.log.get(turn.session, turn.outcomeSeq);
    if (hinted !== undefined && holdsOutcomeOf(hinted, turn)) return hinted;
  }
  for (let to = tail.seq; to > 0; to -= limits.logBatchMax) {
    const from = Math.max(1, to - limits.logBatchMax + 1);
    const entries = await ledger.store.log.read(turn.session, from, to - from + 1);
    const found = entries.find((entry) => holdsOutcomeOf(entry, turn));
    if (found !== undefined) return found;
  }
  throw new HeadfastError(
    "document_invalid",
    `the log of session ${JSON.stringify(turn.session)} counts an outcome for turn ${turn.number} but holds none`,
    { data: { session: turn.session, number: turn.number } },
  );
}

function holdsOutcomeOf(entry: Entry, turn: Turn): boolean {
  return entry.outcome !== null && entry.turn?.number === turn.number;
}

/** What a cancel came to: an outcome, or a mark that the holder will act on. */
export type Cancelled = { outcome: Outcome; entry: Entry } | { outcome: null };

/** Ends a turn (rule 7): by the log itself where it has no recorded step, else by a mark that its holder obeys. */
export async function cancelTurn(ledger: Ledger, owner: Ownership, turn: Turn, reason: CancelReason): Promise<Cancelled> {
  let running = false;
  const entry = await appendDecided(ledger, owner, (tail) => {
    running = tail.checkpoint.open?.number === turn.number;
    if (running || hasOutcome(tail.checkpoint, turn.number)) return null;
    return cancelDraft(tail, turn, reason, ledger.worker);
  });
  if (entry !== null) return { outcome: "cancelled", entry };
  if (running) {
    await ledger.store.turns.setCancelMark(turn.session, turn.number, reason);
    return { outcome: null };
  }
  const ended = await outcomeEntry(ledger, turn, await readTail(ledger.store, owner));
  return { outcome: ended.outcome as Outcome, entry: ended };
}

/** The entry that ends a turn as cancelled. */
export function cancelDraft(tail: Tail, turn: Pick<Turn, "number" | "turnId" | "generation">, reason: CancelReason, worker: string): Draft {
  const checkpoint = unparked(withOutcome(tail.checkpoint, turn.number), turn.turnId);
  return {
    kind: "cancelled",
    worker,
    turn: { number: turn.number, turnId: turn.turnId, generation: turn.generation },
    outcome: "cancelled",
    reason,
    checkpoint,
  };
}

/** Gives the session to another bot (rule 5): the entry first, then the document. Resolves with the owner that stands. */
export async function reownSession(ledger: Ledger, owner: Ownership, to: BotName, actor: Actor): Promise<Ownership> {
  await appendDecided(ledger, owner, (tail) => (tail.checkpoint.bot === to ? null : reownDraft(tail, to, actor, ledger.worker)));
  await rollForward(ledger, owner, await readTail(ledger.store, owner));
  return requireOwner(ledger, owner.session);
}

function reownDraft(tail: Tail, to: BotName, actor: Actor, worker: string): Draft {
  const { open } = tail.checkpoint;
  const closed =
    open === null
      ? tail.checkpoint
      : { ...withOutcome(tail.checkpoint, open.number), owed: { turnId: open.turnId, generation: open.generation } };
  return {
    kind: "reowned",
    worker,
    by: actor.by,
    why: actor.why ?? null,
    // A turn with recorded steps ends here; one without starts again under the new owner by itself (I5).
    ...(open === null
      ? {}
      : {
          turn: { number: open.number, turnId: open.turnId, generation: open.generation },
          outcome: "dead" as const,
          cause: { code: "reowned", message: `the session was given to bot ${to} while the turn ran; its next generation runs there` },
        }),
    checkpoint: { ...closed, bot: to, ownerEpoch: tail.checkpoint.ownerEpoch + 1, baseline: 0, heard: null, wrote: [] },
  };
}

/**
 * Anyone who sees a re-own in the log brings the document after it, and the closed turn's next generation to the head
 * (rule 5), before going on. Harmless when done already.
 */
export async function rollForward(ledger: Ledger, owner: Ownership, tail: Tail): Promise<void> {
  const { bot, ownerEpoch, owed } = tail.checkpoint;
  if (owner.ownerEpoch < ownerEpoch) await ledger.store.ownership.rollForward(owner.session, { bot, ownerEpoch });
  if (owed === null) return;
  const closed = await closedTurn(ledger, owner.session, owed.turnId, owed.generation);
  const next = await placeNextGeneration(ledger, closed, owner.lastNumber, byReown);
  await toHead(ledger, owner, next.turn, byReown);
}

const byReown: Actor = { by: "re-own" };

async function closedTurn(ledger: Ledger, session: SessionId, turnId: TurnId, generation: number): Promise<Turn> {
  const turn = await ledger.store.turns.byId(session, turnId, generation);
  if (turn === undefined)
    throw new HeadfastError(
      "turn_not_found",
      `no turn ${JSON.stringify(turnId)} of generation ${generation} in session ${JSON.stringify(session)}`,
    );
  return turn;
}

async function placeNextGeneration(ledger: Ledger, dead: Turn, lastKnown: number, { by, why }: Actor): Promise<Accepted> {
  const { bot, session, turnId, input, user, deliverTo, traceparent } = dead;
  const request = {
    bot,
    session,
    turnId,
    input,
    ...(user && { user }),
    ...(deliverTo && { deliverTo }),
    ...(traceparent && { traceparent }),
  };
  const fresh = { ...freshTurn(ledger, request, dead.generation + 1), replay: { by, why: why ?? null } };
  return placeTurn(ledger, fresh, Math.max(lastKnown, dead.number));
}

/** Puts a turn to the head by an entry; until it stands, the turn waits at its number (rule 4). */
async function toHead(ledger: Ledger, owner: Ownership, turn: Turn, actor: Actor): Promise<void> {
  await appendDecided(ledger, owner, (tail) => {
    const owes = tail.checkpoint.owed?.turnId === turn.turnId;
    const checkpoint = withNext({ ...tail.checkpoint, owed: owes ? null : tail.checkpoint.owed }, turn.number);
    if (!owes && checkpoint.next === tail.checkpoint.next) return null;
    return {
      kind: "next",
      worker: ledger.worker,
      by: actor.by,
      why: actor.why ?? null,
      turn: { number: turn.number, turnId: turn.turnId, generation: turn.generation },
      checkpoint,
    };
  });
}

/** A turn of which the log says dead, not discarded: what a letter is (rule 12). */
export interface DeadTurn {
  turn: Turn;
  entry: Entry;
}

/** @throws `dead_letter_not_found` with the reason. */
export async function deadTurn(ledger: Ledger, owner: Ownership, turnId: TurnId): Promise<DeadTurn> {
  const turn = await latestGeneration(ledger, owner.session, turnId);
  const state = await turnState(ledger, owner, turn);
  const no = (reason: string): HeadfastError =>
    new HeadfastError(
      "dead_letter_not_found",
      `turn ${JSON.stringify(turnId)} of session ${JSON.stringify(owner.session)} is no dead letter: ${reason}`,
      { data: { session: owner.session, turnId } },
    );
  if (state.state !== "ended") throw no(`it is ${state.state}`);
  if (state.entry.outcome !== "dead") throw no(`its outcome is ${state.entry.outcome}`);
  if ((await ledger.store.log.byKey(owner.session, discardedKey(turnId, turn.generation))) !== undefined) throw no("it was discarded");
  return { turn, entry: state.entry };
}

export interface Replayed {
  turn: Turn;
  /** Another operator, or an earlier try, had replayed it already. */
  already: boolean;
}

/** Opens the turn's next generation (rule 4), at the tail or at the head. @throws `dead_letter_not_found` */
export async function replayLetter(
  ledger: Ledger,
  owner: Ownership,
  dead: DeadTurn,
  position: "tail" | "head",
  actor: Actor,
): Promise<Replayed> {
  const before = await ledger.store.turns.byId(owner.session, dead.turn.turnId, dead.turn.generation + 1);
  const { turn, duplicate } = before
    ? { turn: before, duplicate: true }
    : await placeNextGeneration(ledger, dead.turn, owner.lastNumber, actor);
  if (position === "head") await toHead(ledger, owner, turn, actor);
  await ledger.store.turns.clearLetter(owner.session, dead.turn.number);
  return { turn, already: duplicate }; // of several at once, one insert was first (I4)
}

/** The letter is done with; a parked session goes on (rule 18). */
export async function discardLetter(ledger: Ledger, owner: Ownership, dead: DeadTurn, actor: Actor): Promise<void> {
  const { number, turnId, generation } = dead.turn;
  const key = discardedKey(turnId, generation);
  await appendDecided(ledger, owner, async (tail) => {
    if ((await ledger.store.log.byKey(owner.session, key)) !== undefined) return null;
    return {
      kind: "discarded",
      worker: ledger.worker,
      by: actor.by,
      why: actor.why ?? null,
      turn: { number, turnId, generation },
      checkpoint: unparked(tail.checkpoint, turnId),
    };
  });
  await ledger.store.turns.clearLetter(owner.session, number);
}
