/**
 * `turns`: the input as it was accepted, in the order of its number (rule 1), and what decides no outcome. `_id` is
 * session and number. Each change is one guarded update of one document.
 */
import { numberedId } from "../domain/ids.ts";
import { limits } from "../domain/limits.ts";
import type { User } from "../domain/messages.ts";
import type { SettledMark, TurnStore } from "../domain/ports.ts";
import type { Attempt, Turn } from "../domain/records.ts";
import type { Documents, Key, Shape, Update } from "./documents.ts";
import { causeOfFailure, outcome } from "./fields.ts";
import { finite, id, listOf, nullable, object, oneOf, optional, type Stored, text, whole } from "./mapping.ts";

const attempt = object<Attempt>({
  number: ["number", whole],
  worker: ["worker", text],
  startedAt: ["started_at", text],
  endedAt: ["ended_at", text],
  error: ["error", causeOfFailure],
});

export const turnsShape: Shape<Turn> = {
  collection: "turns",
  keyOf: (turn) => keyOf(turn.session, turn.number),
  fields: {
    v: ["v", whole],
    session: ["session", id("session")],
    number: ["number", whole],
    turnId: ["turn_id", id("turnId")],
    generation: ["generation", whole],
    bot: ["bot_id", id("bot")],
    input: ["input", text],
    inputSha256: ["input_sha256", text],
    user: ["user", optional(object<User>({ id: ["id", text], name: ["name", optional(text)] }))],
    deliverTo: ["deliver_to", optional(text)],
    traceparent: ["traceparent", optional(text)],
    replay: ["replay", optional(object<NonNullable<Turn["replay"]>>({ by: ["by", text], why: ["why", nullable(text)] }))],
    acceptedAt: ["accepted_at", text],
    writer: ["writer", text],
    attempts: ["attempts", listOf(attempt)],
    attemptsSpent: ["attempts_spent", whole],
    dueAt: ["due_at", nullable(finite)],
    crashes: ["crashes", whole],
    stallSeen: ["stall_seen", nullable(object({ job: ["job", text], count: ["count", whole] }))],
    startMark: ["start_mark", nullable(text)],
    cancelMark: ["cancel_mark", nullable(oneOf("user", "interrupted", "collected"))],
    open: ["open", nullable(text)],
    outcome: ["outcome", nullable(outcome)],
    outcomeSeq: ["outcome_seq", nullable(whole)],
    letter: ["letter", nullable(text)],
  },
};

function keyOf(session: string, number: number): Key {
  return { _id: numberedId(session, number), session };
}

export function turnStore(turns: Documents<Turn>): TurnStore {
  return {
    insert: (turn) => turns.insert(turn),
    byNumber: (session, number) => turns.get(keyOf(session, number)),
    byId: (session, turnId, generation) => turns.one({ session, turn_id: turnId, generation }),

    async addAttempt(session, number, added, dueAt) {
      const kept = { $push: { attempts: { $each: [attempt.encode(added)], $slice: -limits.attemptsKeptMax } } };
      const change = { ...turns.changes({ attemptsSpent: added.number, dueAt }), ...kept };
      await turns.update(keyOf(session, number), { attempts_spent: added.number - 1 }, change);
    },

    setDue: async (session, number, dueAt) => turns.update(keyOf(session, number), {}, turns.changes({ dueAt })),

    async addCrash(session, number, expected, seen, charge) {
      const guard = expected === null ? { stall_seen: null } : { "stall_seen.job": expected.job, "stall_seen.count": expected.count };
      await turns.update(keyOf(session, number), guard, { ...turns.changes({ stallSeen: seen }), $inc: { crashes: charge } });
    },

    setStartMark: async (session, number, startMark) => turns.update(keyOf(session, number), {}, turns.changes({ startMark })),
    setCancelMark: async (session, number, cancelMark) =>
      turns.update(keyOf(session, number), { cancel_mark: null }, turns.changes({ cancelMark })),
    settle: async (marks) => turns.updateAll(marks.flatMap((mark) => settling(turns, mark))),

    // `letter_cleared` stays, so that a mark that comes late brings no letter back.
    clearLetter: (session, number) => turns.update(keyOf(session, number), {}, { $set: { letter_cleared: true }, $unset: { letter: "" } }),

    open: (shard, after, limit) => page(turns, "open", shard, after, limit),
    letters: (shard, after, limit) => page(turns, "letter", shard, after, limit),
  };
}

/** The first mark of a turn stands: a repeat matches nothing. For a dead letter the two guards exclude each other. */
function settling(
  turns: Documents<Turn>,
  { session, number, letter, ...mark }: SettledMark,
): { key: Key; guard: Stored | object; change: Update }[] {
  const key = keyOf(session, number);
  const settled = { key, guard: { outcome: null }, change: turns.changes({ ...mark, open: null }) };
  if (letter === null) return [settled];
  return [
    { key, guard: { outcome: null, letter_cleared: null }, change: turns.changes({ ...mark, open: null, letter }) },
    { ...settled, guard: { outcome: null, letter_cleared: true } },
  ];
}

/** Up to `limit` turns after the cursor, and all that share the last one's text: a cursor never cuts between equals. */
async function page(turns: Documents<Turn>, field: "open" | "letter", shard: number, after: string | null, limit: number): Promise<Turn[]> {
  const rows: Turn[] = [];
  for (let cursor = after ?? `${shard}:`; ; ) {
    const found = await turns.find({ [field]: { $gt: cursor, $lt: `${shard};` } }, { [field]: 1 }, limit);
    const last = found.at(-1)?.[field];
    if (found.length < limit || typeof last !== "string") return [...rows, ...turns.decodeReadable(found)];
    const equals = await turns.find({ [field]: last }, { _id: 1 }, 0);
    rows.push(...turns.decodeReadable([...found.filter((document) => document[field] !== last), ...equals]));
    if (rows.length >= limit) return rows;
    cursor = last;
  }
}
