/** Sessions whose turns have waited for long, for an operator's look. Reads only; costs what lies open. */
import { hasOutcome } from "../domain/checkpoint.ts";
import type { BotName, SessionId, TurnId } from "../domain/ids.ts";
import { limits } from "../domain/limits.ts";
import { readTail } from "../domain/log.ts";
import type { Ledger } from "../domain/ports.ts";
import type { Turn } from "../domain/records.ts";

export interface WaitingSession {
  session: SessionId;
  /** The owner by the log. */
  bot: BotName;
  /** The turn that runs next, or runs: the oldest without an outcome. */
  turnId: TurnId;
  acceptedAt: string;
  attemptsSpent: number;
  /** The error of its last attempt. */
  lastError: string | null;
  /** Not before this, in Redis time (milliseconds). */
  dueAt: number | null;
  /** A turn of it has recorded steps and no outcome. */
  running: boolean;
  /** It waits for a replay or a discard. */
  parked: boolean;
  /** Its ownership document is missing. */
  unowned: boolean;
}

/** Sessions with a turn accepted more than `olderThanMs` ago that has no outcome; oldest first in each shard, at most `limits.listMax`. */
export async function waitingSessions(ledger: Ledger, shards: number, olderThanMs: number): Promise<WaitingSession[]> {
  const before = new Date(ledger.system.now() - olderThanMs).toISOString();
  const found = new Map<SessionId, WaitingSession>();
  for (let shard = 0; shard < shards; shard += 1) {
    for await (const turn of openTurns(ledger, shard)) {
      if (turn.acceptedAt > before || found.size >= limits.listMax) break;
      if (!found.has(turn.session)) await look(ledger, turn, found);
    }
  }
  return [...found.values()];
}

async function* openTurns({ store }: Ledger, shard: number): AsyncGenerator<Turn> {
  let cursor: string | null = null;
  for (;;) {
    const page: Turn[] = await store.turns.open(shard, cursor, limits.reconcilePageMax);
    yield* page;
    const last = page.at(-1);
    if (last === undefined || page.length < limits.reconcilePageMax) return;
    cursor = last.open;
  }
}

/** The mark of a turn lags its outcome: the log says whether it really is open. */
async function look({ store }: Ledger, turn: Turn, found: Map<SessionId, WaitingSession>): Promise<void> {
  const { session, turnId, acceptedAt, attemptsSpent, dueAt } = turn;
  const owner = await store.ownership.get(session);
  const checkpoint = owner === undefined ? null : (await readTail(store, owner)).checkpoint;
  if (checkpoint !== null && hasOutcome(checkpoint, turn.number)) return;
  const lastError = turn.attempts.at(-1)?.error.code ?? null;
  const running = checkpoint !== null && checkpoint.open !== null;
  const parked = checkpoint !== null && checkpoint.parked !== null;
  found.set(session, {
    session,
    bot: checkpoint?.bot ?? turn.bot,
    turnId,
    acceptedAt,
    attemptsSpent,
    lastError,
    dueAt,
    running,
    parked,
    unowned: checkpoint === null,
  });
}
