/**
 * What is stored, in the shape the protocol works on. MongoDB's documents are these with snake_case names.
 * The log decides; everything else is a hint, a cache or a projection of it.
 */
import type { Cause } from "./errors.ts";
import type { BotName, SessionId, TurnId } from "./ids.ts";
import type { Message, Usage, User } from "./messages.ts";

/** The version of every document, entry and payload written by this release (rule 19). */
export const recordVersion = 1;

/** Which bot owns a session, and the snapshot that its prefix was frozen from. */
export interface Ownership {
  v: number;
  session: SessionId;
  bot: BotName;
  role: string;
  provenance: string | null;
  parent: SessionId | null;
  /** Counts the owners: 0 for the first, +1 with each re-own. */
  ownerEpoch: number;
  /** 0 while the persona is open; 1 from the snapshot on. `null`: nothing frozen yet. */
  baseline: number | null;
  /** Absent (undefined) = not taken. An empty string is a snapshot. */
  personaSnapshot?: string;
  /** ISO 8601, for people. */
  personaSnapshotAt?: string;
  personaSha256?: string;
  /** Hash of the frozen tools' text in `prefix_parts`. */
  toolsSha256?: string;
  rolePromptsSha256?: string;
  /** The dialect the prefix was rendered in, and the hash of that text in `prefix_parts`. */
  dialect?: string;
  prefixSha256?: string;
  /** Hints, written lazily: the last number and seq seen. May lag, never lead. */
  lastNumber: number;
  lastSeq: number;
  /** When the session was last active, in milliseconds; lazy. */
  activeAt: number;
  createdAt: string;
}

/** One try of a turn, for the operator. */
export interface Attempt {
  number: number;
  worker: string;
  startedAt: string;
  endedAt: string;
  error: Cause;
}

/** What tells a stall that was charged from a new one: the activation's job and its stalled counter. */
export interface StallSeen {
  job: string;
  count: number;
}

/** A turn as it was accepted: one document per generation; its number is its place in the order. */
export interface Turn {
  v: number;
  session: SessionId;
  /** Dense from 1. */
  number: number;
  turnId: TurnId;
  /** 0 as sent; +1 with each replay. */
  generation: number;
  /** The bot named when it was accepted; the owner when it runs decides. */
  bot: BotName;
  input: string;
  inputSha256: string;
  user?: User;
  deliverTo?: string;
  traceparent?: string;
  /** Of a later generation: who asked for it, and why. */
  replay?: { by: string; why: string | null };
  /** ISO 8601, for people; the order never depends on it. */
  acceptedAt: string;
  /** Random per insert: after a lost answer, "mine" is success. */
  writer: string;
  attempts: Attempt[];
  attemptsSpent: number;
  /** Not before this, in Redis time (milliseconds). */
  dueAt: number | null;
  crashes: number;
  stallSeen: StallSeen | null;
  /** Who runs it as a suspect (rule 13). */
  startMark: string | null;
  /** Someone asked for the end of a turn that has recorded steps. */
  cancelMark: CancelReason | null;
  /** `shard:time` while the turn may lack an outcome; taken off lazily. */
  open: string | null;
  /** Set with the taking off: what the log said, and where. A hint. */
  outcome: Outcome | null;
  outcomeSeq: number | null;
  /** `shard:time` while the turn is a dead letter; a view of the log, for listing. */
  letter: string | null;
}

export type Outcome = "done" | "dead" | "cancelled";
export type CancelReason = "user" | "interrupted" | "collected";

/** What a session last heard of its Memory Repository. */
export interface Heard {
  /** The manifest's id. */
  state: string;
  /** `null`: detached. */
  branch: string | null;
  /** `null`: unborn. */
  head: string | null;
}

/** A path that the session's own tools wrote: found with any of these blobs it is nobody's news. `null` = absent. */
export interface Wrote {
  path: string;
  blobs: (string | null)[];
}

export interface OpenTurn {
  number: number;
  turnId: TurnId;
  generation: number;
  /** Steps recorded so far. */
  steps: number;
}

export interface TurnRef {
  turnId: TurnId;
  generation: number;
}

/** Everything that decides what comes next, as of one entry: each entry carries it whole. */
export interface Checkpoint {
  bot: BotName;
  ownerEpoch: number;
  baseline: number;
  /** All numbers up to it have outcomes, and it is the largest such. */
  through: number;
  /** Ranges [from, to] of numbers above `through + 1` that have outcomes. */
  above: [number, number][];
  /** Numbers put to the head, oldest first, without outcome. */
  next: number[];
  /** The turn with a step and no outcome: the head, whatever else says (rule 2). */
  open: OpenTurn | null;
  /** Only the next generation of this turn runs (rule 18). */
  parked: TurnRef | null;
  /** A turn that a re-own closed and whose next generation is still to be inserted (rule 5). */
  owed: TurnRef | null;
  heard: Heard | null;
  wrote: readonly Wrote[];
  /** Notes told up to this number. */
  notesTold: number;
  /** Length in UTF-16 units and hash of the cached sequence that was recorded last. */
  sequence: { length: number; sha256: string } | null;
}

export type EntryKind = "step" | "dead" | "cancelled" | "next" | "reowned" | "discarded";

/** One document of the log: inserted under its seq, never updated. */
export interface Entry {
  v: number;
  session: SessionId;
  /** Dense from 1. */
  seq: number;
  /** Unique in the session; never absent. */
  entryKey: string;
  writer: string;
  kind: EntryKind;
  /** The turn it is about. */
  turn: { number: number; turnId: TurnId; generation: number } | null;
  /** 1, 2, … within the generation, for kind `step`. */
  step: number | null;
  messages: Message[];
  /** Each message as rendered for `dialect`, in order: what every later request replays. */
  rendered: string[];
  dialect: string | null;
  usage: Usage | null;
  model: string | null;
  /** The notice that this step told, for people and checkers. */
  notice: string | null;
  outcome: Outcome | null;
  /** Of `dead`. */
  cause: Cause | null;
  /** Of `cancelled`. */
  reason: CancelReason | null;
  /** Of `dead`: the session waits for replay or discard. */
  parks: boolean;
  /** Of `reowned`, `discarded`, `next`: who asked, and why. */
  by: string | null;
  why: string | null;
  prefixSha256: string | null;
  checkpoint: Checkpoint;
  /** ISO 8601, for people. */
  at: string;
  worker: string;
  previousHash: string;
  /** SHA-256 over all of the above in canonical form. */
  hash: string;
}

/** A host's fact for the bottom of the next turn. */
export interface Note {
  v: number;
  session: SessionId;
  number: number;
  text: string;
  writer: string;
  at: string;
}

/** Projection for people and the queue: what an observation found. Only the log says what was heard. */
export interface Observation {
  v: number;
  session: SessionId;
  bot: BotName;
  /** Before the first entry of this owner epoch, what was heard is this (first write wins). */
  baseline: Heard | null;
  baselineEpoch: number;
  /** The pending notice, made from `from` (an id of what was heard) to `to`. */
  pending: { from: string; to: string; text: string } | null;
  lookedAt: string;
}

/** The intent of a tool's write, stored before the file is touched (rule 10). */
export interface WriteIntent {
  v: number;
  session: SessionId;
  /** Stable identity of the call: the same after a crash. */
  callId: string;
  /** The call's n-th write, from 0. */
  index: number;
  path: string;
  before: string | null;
  after: string | null;
}

/** One file of a manifest. */
export interface ManifestEntry {
  /** Raw bytes as text: UTF-8 where it is valid, other bytes as `\xNN`. */
  path: string;
  /** `100644`, `100755`, `120000` (symlink) or `160000` (a repository inside). */
  mode: string;
  blob: string;
}

/** A state of the Memory Repository. */
export interface MemoryState extends Heard {
  manifest: readonly ManifestEntry[];
}
