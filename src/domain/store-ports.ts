/** MongoDB, the truth, as the protocol sees it. */
import type { BotName, SessionId, TurnId } from "./ids.ts";
import type {
  Attempt,
  CancelReason,
  Entry,
  Heard,
  ManifestEntry,
  Note,
  Observation,
  Outcome,
  Ownership,
  StallSeen,
  Turn,
  WriteIntent,
} from "./records.ts";

/** `duplicate`: some unique key collided; that alone proves nothing (rule 3). */
export type Inserted = "inserted" | "duplicate";

export interface OwnershipStore {
  get(session: SessionId): Promise<Ownership | undefined>;
  /** Inserts where the session is unknown. Resolves with what stands afterwards, whoever owns it. */
  claim(fresh: Ownership): Promise<Ownership>;
  /**
   * First assembly (rule 6): sets the fields if bot and epoch still hold and the baseline is still `from`.
   * Says nothing of who won: read back.
   */
  freeze(session: SessionId, guard: { bot: BotName; ownerEpoch: number; from: number | null }, set: FrozenPrefix): Promise<void>;
  /** Rolls a re-own forward (rule 5): sets bot and epoch and clears all that was frozen, if the stored epoch is lower. */
  rollForward(session: SessionId, to: { bot: BotName; ownerEpoch: number }): Promise<void>;
  /** Lazy hints in bulk; a lower number than the stored one changes nothing. */
  touch(hints: readonly SessionHint[]): Promise<void>;
  /** Newest activity first. */
  list(filter: { bot?: BotName; activeSince?: number; limit: number }): Promise<Ownership[]>;
}

export interface FrozenPrefix {
  baseline: number;
  toolsSha256: string;
  rolePromptsSha256: string;
  dialect: string;
  prefixSha256: string;
  /** Both or neither: absent while the repository is not ready. */
  personaSnapshot?: string;
  personaSnapshotAt?: string;
  personaSha256?: string;
}

export interface SessionHint {
  session: SessionId;
  lastNumber: number;
  lastSeq: number;
  activeAt: number;
}

export interface TurnStore {
  /** Unique: (session, number) and (session, turnId, generation). */
  insert(turn: Turn): Promise<Inserted>;
  byNumber(session: SessionId, number: number): Promise<Turn | undefined>;
  byId(session: SessionId, turnId: TurnId, generation: number): Promise<Turn | undefined>;
  /** Adds the attempt if `number` is the next one (so a repeat adds nothing), and sets when the turn is due. */
  addAttempt(session: SessionId, number: number, attempt: Attempt, dueAt: number | null): Promise<void>;
  /** When the turn is due (Redis time), or null. */
  setDue(session: SessionId, number: number, dueAt: number | null): Promise<void>;
  /** Charges one crash if the stored `stallSeen` still is `expected`; else changes nothing. */
  addCrash(session: SessionId, number: number, expected: StallSeen | null, seen: StallSeen, charge: 0 | 1): Promise<void>;
  setStartMark(session: SessionId, number: number, mark: string | null): Promise<void>;
  /** First mark wins. */
  setCancelMark(session: SessionId, number: number, reason: CancelReason): Promise<void>;
  /** Takes `open` off and notes the outcome, in bulk; `letter` (`shard:time`) is set for dead letters. */
  settle(marks: readonly SettledMark[]): Promise<void>;
  /** A letter that was replayed or discarded leaves the listing. */
  clearLetter(session: SessionId, number: number): Promise<void>;
  /**
   * Turns that may lack an outcome, oldest first, after the cursor (`open` text): up to `limit`, and all that share the
   * last one's text, so that a cursor never cuts between equals. Fewer than `limit` = the end.
   */
  open(shard: number, after: string | null, limit: number): Promise<Turn[]>;
  /** Dead letters, oldest first, after the cursor (`letter` text); pages as `open` does. */
  letters(shard: number, after: string | null, limit: number): Promise<Turn[]>;
}

export interface SettledMark {
  session: SessionId;
  number: number;
  outcome: Outcome;
  outcomeSeq: number;
  letter: string | null;
}

export interface LogStore {
  /** Unique: (session, seq) and (session, entryKey). */
  insert(entry: Entry): Promise<Inserted>;
  get(session: SessionId, seq: number): Promise<Entry | undefined>;
  byKey(session: SessionId, entryKey: string): Promise<Entry | undefined>;
  /** Up to `count` entries from `from` on, in order, without holes. */
  read(session: SessionId, from: number, count: number): Promise<Entry[]>;
}

export interface NoteStore {
  /** Unique: (session, number). */
  insert(note: Note): Promise<Inserted>;
  get(session: SessionId, number: number): Promise<Note | undefined>;
}

export interface ObservationStore {
  get(session: SessionId): Promise<Observation | undefined>;
  /** The silent baseline: the first of an owner epoch wins. Resolves with what stands. */
  baseline(session: SessionId, bot: BotName, ownerEpoch: number, heard: Heard, at: string): Promise<Observation>;
  /** Replaces the pending notice whole; creates nothing. */
  project(session: SessionId, ownerEpoch: number, pending: Observation["pending"], at: string): Promise<void>;
}

/** Manifests by content hash. Putting one twice is harmless. `inserted`: it stands; `duplicate` alone proves nothing. */
export interface StateStore {
  put(id: string, manifest: readonly ManifestEntry[]): Promise<Inserted>;
  get(id: string): Promise<ManifestEntry[] | undefined>;
}

/** Texts of frozen tools, role prompts and rendered prefixes, by SHA-256. Putting one twice is harmless. `duplicate` alone proves nothing. */
export interface PartsStore {
  put(sha256: string, text: string): Promise<Inserted>;
  get(sha256: string): Promise<string | undefined>;
}

export interface JournalStore {
  /** Unique: (session, callId, index). */
  insert(intent: WriteIntent): Promise<Inserted>;
  get(session: SessionId, callId: string, index: number): Promise<WriteIntent | undefined>;
  /** All intents of one call, by index. */
  ofCall(session: SessionId, callId: string): Promise<WriteIntent[]>;
}

export interface SettingsStore {
  /** First write wins; resolves with what stands. */
  once(name: string, value: string): Promise<string>;
}

export interface Store {
  ownership: OwnershipStore;
  turns: TurnStore;
  log: LogStore;
  notes: NoteStore;
  observations: ObservationStore;
  states: StateStore;
  parts: PartsStore;
  journal: JournalStore;
  settings: SettingsStore;
  close(): Promise<void>;
}
