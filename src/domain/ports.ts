/**
 * What the actors see of the world: a handful of functions each, never a driver. Every port has one conformance suite
 * that the in-memory and the real adapter pass. All reads that are acted on are majority reads on the primary; every
 * write is acknowledged by a majority before its promise resolves. A promise that rejects with `store_unavailable`
 * says nothing of whether the write was applied.
 */
import type { BotName, SessionId, TurnId } from "./ids.ts";
import type { AssistantMessage, Message, Usage, User } from "./messages.ts";
import type {
  Attempt,
  CancelReason,
  Entry,
  Heard,
  ManifestEntry,
  MemoryState,
  Note,
  Observation,
  Outcome,
  Ownership,
  StallSeen,
  Turn,
  WriteIntent,
} from "./records.ts";

/** Time and chance, whole. */
export interface System {
  /** Wall clock in milliseconds since 1970. For people; nothing is ordered by it. */
  now(): number;
  /** Milliseconds that only grow. */
  monotonic(): number;
  /** Resolves after `ms`, or at once when the signal aborts. Never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  id(): string;
  /** In [0, 1). */
  random(): number;
}

// ── MongoDB: the truth ─────────────────────────────────────────────────────────────────────────────

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

/** What every operation on turns and logs needs. */
export interface Ledger {
  store: Store;
  system: System;
  /** This process, as entries and attempts name it. */
  worker: string;
  shardOf(session: SessionId): number;
}

// ── Redis: what is still to be done ────────────────────────────────────────────────────────────────

/** A turn as it lies in the turn queue: a hint and a cache, never the order. */
export interface QueuedTurn {
  /** What removes it. */
  jobId: string;
  turnId: TurnId;
  generation: number;
  /** Absent where another client than ours added it: it must be stored before it is run. */
  number?: number;
  bot: BotName;
  /** Absent where it was too large to lie inline. */
  input?: string;
  user?: User;
  deliverTo?: string;
  traceparent?: string;
}

/** A job of the turn queue that cannot be understood: it becomes a refused letter whole. */
export interface RefusedJob {
  jobId: string;
  refused: string;
  raw: string;
}

/** How an activation ended. */
export type ActivationEnd =
  /** Nothing to do. */
  | { kind: "idle" }
  /** More to do, but others first. */
  | { kind: "yield" }
  /** Not before `ms` have passed. */
  | { kind: "delay"; ms: number; reason: string }
  /** The worker goes away: the session is the next one's first. */
  | { kind: "handover" };

/** The right to run one session for a while. Only saves work: the log is the fence. */
export interface Lease {
  session: SessionId;
  /** Aborted when the lease is lost (`reason` is `lease_lost`) or the worker drains (`draining`). */
  signal: AbortSignal;
  /** How often this activation was taken over from a holder that vanished. `excused`: a Redis restart explains it. */
  stall: StallSeen & { excused: boolean };
  /** The first stay of this activation: no back-off, takeover or delay came before. */
  fresh: boolean;
}

export type ActivationHandler = (lease: Lease) => Promise<ActivationEnd>;

export interface ActivationRunner {
  /** Takes nothing new; aborts what still runs after `drainMs`; resolves when all have returned. */
  close(drainMs: number): Promise<void>;
}

export interface Queues {
  readonly shards: number;
  /** The shard a session belongs to. */
  shardOf(session: SessionId): number;
  /** Redis time in milliseconds, as well as it is known. */
  now(): number;
  /** False while Redis does not answer. */
  connected(): boolean;
  /** Turn first, activation second. Rejects with `queue_unavailable`; adding twice is harmless. */
  enqueue(turn: Turn): Promise<void>;
  /** Asks for an activation of the session. */
  wake(session: SessionId): Promise<void>;
  /** Wakes a session early that is delayed for a back-off. */
  promote(session: SessionId): Promise<void>;
  /** Up to `limits.peekMax` heads. */
  peek(session: SessionId): Promise<(QueuedTurn | RefusedJob)[]>;
  /** Removes jobs that have an outcome, and the queue's last keys with them; answers the next heads. */
  settle(session: SessionId, jobIds: readonly string[]): Promise<(QueuedTurn | RefusedJob)[]>;
  /** The job id that a turn of ours has. */
  jobId(turnId: TurnId, generation: number): string;
  /** Adds what is missing of these open turns of one session, and its activation. Only adds. */
  repair(session: SessionId, turns: readonly Turn[]): Promise<{ turns: number; activations: number }>;
  /** Starts to run activations. */
  work(handler: ActivationHandler, options: { concurrency: number }): Promise<ActivationRunner>;
  inbox: InboxQueue;
  letters: LetterQueue;
  observations: ObservationQueue;
  events: Events;
  /** Called when Redis is back with another identity than before: whatever it held may be gone. */
  onRestart(listener: () => void): void;
  close(): Promise<void>;
}

export interface InboxItem {
  /** `notice`, or `note-N`. */
  id: string;
  text: string;
}

/** The outbox of notices and notes: wakes nobody (I9), twice is harmless. */
export interface InboxQueue {
  /** Adds or replaces the item of that id. */
  publish(session: SessionId, item: InboxItem): Promise<void>;
  /** Removes items by id, and the queue's last keys with them. */
  remove(session: SessionId, ids: readonly string[]): Promise<void>;
  list(session: SessionId): Promise<InboxItem[]>;
}

/** One dead letter as it lies in Redis, for tools that look there; the log is the truth. */
export interface Letter {
  session: SessionId;
  turnId: TurnId;
  generation: number;
  payload: unknown;
}

export interface LetterQueue {
  put(letter: Letter): Promise<void>;
  remove(session: SessionId, turnId: TurnId, generation: number): Promise<void>;
  /** A job that could not be understood: kept whole, under its own reason. */
  putRefused(session: SessionId, job: RefusedJob): Promise<void>;
  list(limit: number): Promise<unknown[]>;
}

export interface ObservationQueue {
  /** Asks for a look; asking again while one waits is one look. */
  request(bot: BotName, reason: string): Promise<void>;
  work(bots: readonly BotName[], handler: (bot: BotName, reason: string) => Promise<void>): Promise<{ close(): Promise<void> }>;
}

/** What hosts hear. Lossy by design: a waiter reads MongoDB too. */
export interface TurnEvent {
  session: SessionId;
  /** The log's seq at that time: clients drop what is not newer. */
  seq: number;
  type: "turn.queued" | "turn.started" | "turn.retrying" | "message.delta" | "tool.started" | "tool.finished" | "notice.told" | "turn.heartbeat" | "turn.done" | "turn.dead" | "turn.cancelled";
  turnId: TurnId;
  generation: number;
  data: Record<string, unknown>;
}

export interface Events {
  /** Never rejects: an event that cannot be published is dropped. */
  publish(event: TurnEvent): void;
  /** Resolves when the subscription stands. `onReconnect` asks the listener to read the truth again. */
  subscribe(session: SessionId, listener: (event: TurnEvent) => void, onReconnect: () => void): Promise<() => Promise<void>>;
  /** To whoever holds the session: look at the log and at the cancel mark. */
  signal(session: SessionId): void;
  onSignal(listener: (session: SessionId) => void): Promise<() => Promise<void>>;
}

// ── the Memory Repository ──────────────────────────────────────────────────────────────────────────

export type Persona = { state: "ready"; body: string } | { state: "not_ready"; reason: string };
export type Look = { state: "ready"; seen: MemoryState } | { state: "not_ready"; reason: string };

export interface MemoryRepository {
  /** PERSONA.md's body, `""` where it is surely absent or empty. @throws `memory_unreadable` */
  persona(): Promise<Persona>;
  /** The state now. The scan began after this call. @throws `memory_unreadable` */
  look(): Promise<Look>;
  /** The blob id that the path has now, `null` where there is no file. */
  blobNow(path: string): Promise<string | null>;
  /** The blob id that `git add` would give these bytes at that path. */
  blobOf(path: string, bytes: Uint8Array): Promise<string>;
  files: MemoryFiles;
}

/** Jailed file access under the virtual root: no `..`, no symlink, no `.git`, no special file. Paths are relative, with `/`. */
export interface MemoryFiles {
  /** @throws `invalid_input` for what the jail refuses, a missing file or one over `limits.toolFileBytesMax`. */
  read(path: string): Promise<Uint8Array>;
  /** Temporary file and rename; makes folders. @throws `invalid_input` for what the jail refuses. */
  write(path: string, bytes: Uint8Array): Promise<void>;
  /** Regular files below the folder, sorted by code unit, at most `limit`. */
  list(folder: string, limit: number): Promise<{ paths: string[]; more: boolean }>;
}

// ── models and tools ───────────────────────────────────────────────────────────────────────────────

/** One provider's wire format. Pure; an `id` never changes its bytes. */
export interface Dialect {
  id: string;
  /** The prefix as text: tools, role prompts, persona. */
  renderPrefix(parts: PrefixParts): string;
  renderMessage(message: Message): string;
  /** The outgoing body; `cuts` are the ranges [from, to) that are not part of the cached sequence (parameters, cache marks). */
  renderBody(prefix: string, messages: readonly string[], options: BodyOptions): { body: string; cuts: [number, number][] };
  /** What stands between two messages of the cached sequence. */
  separator: string;
}

export interface BodyOptions {
  model: string;
  maxTokens: number;
  /** Messages that were recorded before this turn: where the last completed turn ends. */
  settled: number;
}

export interface PrefixParts {
  tools: readonly ToolSpec[];
  rolePrompts: readonly string[];
  /** `""` and `null` render alike; they differ on the ownership document. */
  persona: string | null;
}

export interface ToolSpec {
  name: string;
  description: string;
  /** JSON Schema of the input. */
  inputSchema: Record<string, unknown>;
}

export interface ModelRequest {
  /** The bytes to send, already guarded. */
  body: string;
  session: SessionId;
  turnId: TurnId;
  /** 1, 2, … within the generation. */
  step: number;
  signal: AbortSignal;
  traceparent?: string;
  onDelta(text: string): void;
}

export interface ModelReply {
  message: AssistantMessage;
  usage: Usage;
}

/** @throws `model_later` (429, overload; no attempt), `model_failed`, `model_timeout` (an attempt), `model_refused` (final). */
export interface Model {
  name: string;
  dialect: Dialect;
  maxTokens: number;
  /** What a provider's limit is shared by, e.g. provider and account; never the key itself. */
  limitKey: string;
  call(request: ModelRequest): Promise<ModelReply>;
}

export interface ToolContext {
  signal: AbortSignal;
  /** Stable: the same call after a crash carries the same id. */
  callId: string;
  session: SessionId;
  turnId: TurnId;
  bot: BotName;
  user?: User;
  /** Absent for a bot without a Memory Repository. */
  memory?: ToolMemory;
}

export interface ToolMemory {
  files: Omit<MemoryFiles, "write">;
  /** Journalled and laid over what was heard, so that it gives this session no notice. */
  write(path: string, bytes: Uint8Array): Promise<void>;
  /**
   * True where this very call wrote the path before a crash and the file still is what it wrote (rule 10). It then counts
   * as written again; a tool whose bytes depend on what it reads, like an edit, must ask before it reads.
   */
  resumed?(path: string): Promise<boolean>;
}

export interface Tool extends ToolSpec {
  /** Checks the arguments. Answers the text for the model. A throw becomes an error result. */
  run(args: unknown, context: ToolContext): Promise<string>;
}

/** A bot as a worker serves it. */
export interface Bot {
  name: BotName;
  model: Model;
  tools: readonly Tool[];
  rolePrompts: readonly string[];
  memory: MemoryRepository | null;
  attemptsMax: number;
  onDead: "skip" | "park";
}

/** Structured, redacted by the caller's logger; a message never holds prompt text. */
export interface Logger {
  debug(data: Record<string, unknown>, message: string): void;
  info(data: Record<string, unknown>, message: string): void;
  warn(data: Record<string, unknown>, message: string): void;
  error(data: Record<string, unknown>, message: string): void;
}
