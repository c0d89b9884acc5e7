/** What a bot is made of: its Memory Repository, its model, its tools. */
import type { BotName, SessionId, TurnId } from "./ids.ts";
import type { AssistantMessage, Message, Usage, User } from "./messages.ts";
import type { MemoryState } from "./records.ts";

/** `warnings`: what was odd about PERSONA.md and what was done about it, for the operator; absent where nothing was. */
export type Persona = { state: "ready"; body: string; warnings?: readonly string[] } | { state: "not_ready"; reason: string };
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
