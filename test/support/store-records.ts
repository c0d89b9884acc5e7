/** Records for tests of the store: the least that is valid, and one with every field there is. */
import { numberedId } from "../../src/domain/ids.ts";
import {
  type Checkpoint,
  type Entry,
  type Note,
  type Observation,
  type Ownership,
  recordVersion,
  type Turn,
  type WriteIntent,
} from "../../src/domain/records.ts";

/** Text that stores and encoders are known to change. */
export const oddText = 'NUL \0, replacement \uFFFD, astral \u{1F600}, decomposed e\u0301, \r\n\u2028, $set.a, "quoted" \\ __proto__';

/** Ids that are easily taken for one another, or for something else. */
export const oddIds = [
  "__proto__",
  "constructor",
  "$where",
  "a.b",
  "a",
  "a#1",
  "a#1#1",
  "a\n",
  "a ",
  "A",
  "\u{1F600}\n",
  "日本",
  "-100123",
  "e\u0301",
  "\u00e9",
  "NUL\0",
  '["a",1]',
  "x".repeat(2048),
  `${"x".repeat(2047)}y`,
];

export const at = "2026-12-01T10:00:00.000Z";

export function ownership(session: string, patch: Partial<Ownership> = {}): Ownership {
  return {
    v: recordVersion,
    session,
    bot: "ada",
    role: "orchestrator",
    provenance: null,
    parent: null,
    ownerEpoch: 0,
    baseline: null,
    lastNumber: 0,
    lastSeq: 0,
    activeAt: 0,
    createdAt: at,
    ...patch,
  };
}

export const frozen = {
  baseline: 1,
  toolsSha256: "t".repeat(64),
  rolePromptsSha256: "r".repeat(64),
  dialect: "test-1",
  prefixSha256: "p".repeat(64),
  personaSnapshot: oddText,
  personaSnapshotAt: at,
  personaSha256: "s".repeat(64),
};

export function fullOwnership(session: string): Ownership {
  return ownership(session, {
    ...frozen,
    role: oddText,
    provenance: oddText,
    parent: "parent",
    ownerEpoch: 3,
    lastNumber: 7,
    lastSeq: 9,
    activeAt: 1_764_583_200_123,
  });
}

export function turn(session: string, number: number, patch: Partial<Turn> = {}): Turn {
  return {
    v: recordVersion,
    session,
    number,
    turnId: `turn ${number}`,
    generation: 0,
    bot: "ada",
    input: "hello",
    inputSha256: "i".repeat(64),
    acceptedAt: at,
    writer: `writer ${number}`,
    attempts: [],
    attemptsSpent: 0,
    dueAt: null,
    crashes: 0,
    stallSeen: null,
    startMark: null,
    cancelMark: null,
    open: null,
    outcome: null,
    outcomeSeq: null,
    letter: null,
    ...patch,
  };
}

export function fullTurn(session: string, number: number): Turn {
  return turn(session, number, {
    generation: 2,
    input: oddText,
    user: { id: oddText, name: oddText },
    deliverTo: oddText,
    traceparent: "00-a-b-01",
    attempts: [
      { number: 1, worker: "w", startedAt: at, endedAt: at, error: { code: "model_failed", message: oddText, stack: oddText } },
      { number: 2, worker: "w", startedAt: at, endedAt: at, error: { code: "model_failed", message: "" } },
    ],
    attemptsSpent: 2,
    dueAt: 1_764_583_200_123,
    crashes: 1,
    stallSeen: { job: "17", count: 2 },
    startMark: "worker",
    cancelMark: "interrupted",
    open: "999:0000001764583200123",
    outcome: "dead",
    outcomeSeq: 4,
    letter: "998:0000001764583200123",
  });
}

export function checkpoint(patch: Partial<Checkpoint> = {}): Checkpoint {
  return {
    bot: "ada",
    ownerEpoch: 0,
    baseline: 0,
    through: 0,
    above: [],
    next: [],
    open: null,
    parked: null,
    owed: null,
    heard: null,
    wrote: [],
    notesTold: 0,
    sequence: null,
    ...patch,
  };
}

export function entry(session: string, seq: number, patch: Partial<Entry> = {}): Entry {
  return {
    v: recordVersion,
    session,
    seq,
    entryKey: `key ${seq}`,
    writer: `writer ${seq}`,
    kind: "next",
    turn: null,
    step: null,
    messages: [],
    rendered: [],
    dialect: null,
    usage: null,
    model: null,
    notice: null,
    outcome: null,
    cause: null,
    reason: null,
    parks: false,
    by: null,
    why: null,
    prefixSha256: null,
    checkpoint: checkpoint(),
    at,
    worker: "w",
    previousHash: "",
    hash: "h".repeat(64),
    ...patch,
  };
}

/** No real entry has all of these at once; a mapping must keep each. */
export function fullEntry(session: string, seq: number): Entry {
  return entry(session, seq, {
    kind: "step",
    turn: { number: 1, turnId: oddText, generation: 1 },
    step: 2,
    messages: [
      {
        role: "user",
        blocks: [
          { type: "notice", text: oddText },
          { type: "note", text: "" },
          { type: "input", text: oddText, user: { id: "u" } },
          { type: "input", text: "no user" },
        ],
      },
      { role: "assistant", text: oddText, toolCalls: [{ id: "c1", name: "write", arguments: '{"$set":{"a.b":1},"__proto__":2}' }] },
      { role: "tool", results: [{ id: "c1", text: oddText, isError: true }] },
    ],
    rendered: [oddText, "", '{"$a.b":1}'],
    dialect: "test-1",
    usage: { fresh: 0, cacheRead: null, cacheWrite: 12, output: 3 },
    model: "m",
    notice: oddText,
    outcome: "done",
    cause: { code: "unexpected", message: oddText },
    reason: "collected",
    parks: true,
    by: "operator",
    why: oddText,
    prefixSha256: "p".repeat(64),
    checkpoint: fullCheckpoint(),
    previousHash: "g".repeat(64),
  });
}

function fullCheckpoint(): Checkpoint {
  return checkpoint({
    ownerEpoch: 2,
    baseline: 1,
    through: 4,
    above: [
      [6, 6],
      [8, 10],
    ],
    next: [12, 11],
    open: { number: 5, turnId: oddText, generation: 0, steps: 2 },
    parked: { turnId: "p", generation: 0 },
    owed: { turnId: "o", generation: 1 },
    heard: { state: "s", branch: null, head: null },
    wrote: [
      { path: oddText, blobs: [null, "b", null] },
      { path: "empty", blobs: [] },
    ],
    notesTold: 3,
    sequence: { length: 1234, sha256: "q".repeat(64) },
  });
}

export function note(session: string, number: number, patch: Partial<Note> = {}): Note {
  return { v: recordVersion, session, number, text: oddText, writer: numberedId("w", number), at, ...patch };
}

export function intent(session: string, callId: string, index: number, patch: Partial<WriteIntent> = {}): WriteIntent {
  return { v: recordVersion, session, callId, index, path: oddText, before: null, after: "b", ...patch };
}

export function observation(session: string, patch: Partial<Observation> = {}): Observation {
  return { v: recordVersion, session, bot: "ada", baseline: heard("one"), baselineEpoch: 0, pending: null, lookedAt: at, ...patch };
}

export function heard(state: string): { state: string; branch: string; head: null } {
  return { state, branch: "main", head: null };
}
