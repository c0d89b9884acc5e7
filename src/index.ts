/** Headfast: long-lived bot sessions on BullMQ and MongoDB whose prompt prefix never changes a byte. */

export type { TurnRequest } from "./domain/acceptance.ts";
export { type Cause, type ErrorCode, type ErrorKind, HeadfastError, isHeadfastError, PrefixDriftError } from "./domain/errors.ts";
export { limits } from "./domain/limits.ts";
export type { AssistantMessage, Message, ToolCall, ToolResult, Usage, User } from "./domain/messages.ts";
export type {
  Bot,
  Dialect,
  InboxItem,
  Logger,
  MemoryRepository,
  Model,
  ModelReply,
  ModelRequest,
  Tool,
  ToolContext,
  ToolMemory,
  TurnEvent,
} from "./domain/ports.ts";
export type { Attempt, Checkpoint, Entry, Outcome, Ownership, Turn } from "./domain/records.ts";
export type { DeadLetter, Replay } from "./host/dead-letters.ts";
export type { PrefixView, SessionView } from "./host/sessions.ts";
export type { Ended } from "./host/turn-watch.ts";
export type { Sent, TurnName } from "./host/turns.ts";
export { type BotDefinition, type Connection, defineBot, Headfast, type RunningWorker, startWorker, type WorkerSettings } from "./main.ts";
export { anthropicDialect } from "./models/anthropic-dialect.ts";
export { fail, later, type Reply, refuse, type Script, type ScriptRequest } from "./models/script.ts";
export { type ScriptedModel, scriptedModel } from "./models/scripted.ts";
export { defineTool } from "./tools/define-tool.ts";
export { fileTools } from "./tools/files.ts";
