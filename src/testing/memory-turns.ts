/** `TurnStore` in memory. */
import { checkId, numberedId } from "../domain/ids.ts";
import { limits } from "../domain/limits.ts";
import type { TurnStore } from "../domain/ports.ts";
import type { Turn } from "../domain/records.ts";
import { checkOwner } from "./memory-owners.ts";
import type { MemoryReplica } from "./memory-replica.ts";
import type { MemoryTable } from "./memory-table.ts";

/** The second unique key of a turn. */
export function turnIdentity({ session, turnId, generation }: Pick<Turn, "session" | "turnId" | "generation">): string {
  return JSON.stringify([session, turnId, generation]);
}

export function memoryTurns(replica: MemoryReplica, turns: MemoryTable<Turn>): TurnStore {
  /** Letters that were cleared: a late mark does not bring them back. */
  const cleared = replica.table<true>();
  const always = (): boolean => true;
  const change = (session: string, number: number, guard: (turn: Turn) => boolean, to: (turn: Turn) => Partial<Turn>): Promise<void> =>
    replica.write(() => turns.update(numberedId(session, number), guard, to));

  return {
    async insert(turn) {
      checkOwner(turn);
      checkId("turnId", turn.turnId);
      return replica.insert(() => turns.insert(numberedId(turn.session, turn.number), turn));
    },
    byNumber: (session, number) => replica.read(() => turns.read(numberedId(session, number))),
    byId: (session, turnId, generation) => replica.read(() => turns.readSecond(turnIdentity({ session, turnId, generation }))),
    addAttempt(session, number, attempt, dueAt) {
      const isNext = (turn: Turn): boolean => turn.attemptsSpent === attempt.number - 1;
      return change(session, number, isNext, (turn) => ({
        attempts: [...turn.attempts, attempt].slice(-limits.attemptsKeptMax),
        attemptsSpent: attempt.number,
        dueAt,
      }));
    },
    setDue: (session, number, dueAt) => change(session, number, always, () => ({ dueAt })),
    addCrash(session, number, expected, seen, charge) {
      const unseen = (turn: Turn): boolean => sameStall(turn.stallSeen, expected);
      return change(session, number, unseen, (turn) => ({ stallSeen: seen, crashes: turn.crashes + charge }));
    },
    setStartMark: (session, number, startMark) => change(session, number, always, () => ({ startMark })),
    setCancelMark(session, number, cancelMark) {
      const unmarked = (turn: Turn): boolean => turn.cancelMark === null;
      return change(session, number, unmarked, () => ({ cancelMark }));
    },
    settle(marks) {
      const unsettled = (turn: Turn): boolean => turn.outcome === null;
      const settleOne = ({ session, number, ...mark }: (typeof marks)[number]): boolean => {
        const id = numberedId(session, number);
        const letter = cleared.onPrimary(id) ? null : mark.letter;
        return turns.update(id, unsettled, () => ({ ...mark, letter, open: null }));
      };
      return replica.write(() => marks.map(settleOne).includes(true));
    },
    clearLetter(session, number) {
      const id = numberedId(session, number);
      return replica.write(() => {
        const known = turns.update(id, always, () => ({ letter: null }));
        if (known) cleared.insert(id, true);
        return known;
      });
    },
    open: (shard, after, limit) => replica.read(() => page(turns.all(), "open", shard, after, limit)),
    letters: (shard, after, limit) => replica.read(() => page(turns.all(), "letter", shard, after, limit)),
  };
}

function sameStall(a: Turn["stallSeen"], b: Turn["stallSeen"]): boolean {
  return a === null || b === null ? a === b : a.job === b.job && a.count === b.count;
}

/** Up to `limit` turns after the cursor, and all that share the last one's text: a cursor never cuts between equals. */
function page(turns: readonly Turn[], field: "open" | "letter", shard: number, after: string | null, limit: number): Turn[] {
  const text = (turn: Turn): string => turn[field] ?? "";
  const rows = turns
    .filter((turn) => text(turn).startsWith(`${shard}:`) && (after === null || text(turn) > after))
    .sort((a, b) => (text(a) < text(b) ? -1 : text(a) > text(b) ? 1 : 0));
  const last = rows[limit - 1];
  return last === undefined ? rows : rows.filter((turn) => text(turn) <= text(last));
}
