/**
 * The neutral form of a conversation. A dialect renders a message once, when it is appended; what goes to the provider
 * afterwards is that text, so no later renderer can change an old byte.
 */

export interface User {
  /** The platform's id of the person who speaks. */
  id: string;
  name?: string;
}

export type UserBlock =
  /** A net change of the Memory Repository, or that a look at it failed. */
  | { type: "notice"; text: string }
  /** A host's note. */
  | { type: "note"; text: string }
  /** What the person said; who spoke stands here, at the bottom, never in the prefix. */
  | { type: "input"; text: string; user?: User };

export interface ToolCall {
  /** The provider's own id of the call, replayed to it as it came. */
  id: string;
  name: string;
  /** JSON text as the model sent it. */
  arguments: string;
}

export interface ToolResult {
  id: string;
  text: string;
  isError: boolean;
}

export interface UserMessage {
  role: "user";
  blocks: UserBlock[];
}
export interface AssistantMessage {
  role: "assistant";
  text: string;
  toolCalls: ToolCall[];
}
export interface ToolMessage {
  role: "tool";
  results: ToolResult[];
}
export type Message = UserMessage | AssistantMessage | ToolMessage;

/** Tokens of one call; `null` = the provider did not report it, which is not the same as 0. */
export interface Usage {
  fresh: number | null;
  cacheRead: number | null;
  cacheWrite: number | null;
  output: number | null;
}
