/** A body of Anthropic Messages, read back: its parts, and its blocks in the order in which the provider caches them. */
import { HeadfastError } from "../domain/errors.ts";

export interface CacheControl {
  type: "ephemeral";
  ttl?: "5m" | "1h";
}

export interface TextBlock {
  type: "text";
  text: string;
  cache_control?: CacheControl;
}
export interface ToolUseBlock {
  type: "tool_use";
  id: string;
  name: string;
  input: Record<string, unknown>;
  cache_control?: CacheControl;
}
export interface ToolResultBlock {
  type: "tool_result";
  tool_use_id: string;
  content: string;
  is_error?: boolean;
  cache_control?: CacheControl;
}
export type ContentBlock = TextBlock | ToolUseBlock | ToolResultBlock;

export interface ToolBlock {
  name: string;
  description: string;
  input_schema: Record<string, unknown>;
  cache_control?: CacheControl;
}

export interface AnthropicBody {
  model: string;
  max_tokens: number;
  tools?: ToolBlock[];
  system?: TextBlock[];
  messages: { role: "user" | "assistant"; content: ContentBlock[] }[];
}

/** How long an entry of the cache lives after its last use, in seconds. */
export type Lifetime = 300 | 3600;

/** One cacheable block. */
export interface PromptBlock {
  kind: "tool" | "system" | ContentBlock["type"];
  /** Tier, place of its message and block as JSON text, without its cache mark: equal only for equal blocks. */
  text: string;
  /** The lifetime of its cache mark in seconds, `null` where it has none. */
  ttlSeconds: Lifetime | null;
}

export const breakpointsMax = 4;

/** @throws {HeadfastError} `model_refused`, as a provider answers 400 to what is no JSON object. */
export function parseBody(body: string): AnthropicBody {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch (error) {
    throw badRequest("the body is not valid JSON", error);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw badRequest("the body is not a JSON object");
  return value as AnthropicBody;
}

/** Tools, system, messages: each block once, in the order in which the provider hashes them. */
export function promptBlocks(body: AnthropicBody): PromptBlock[] {
  return placed(body).map(({ kind, place, block }) => {
    const { cache_control: mark, ...rest } = block;
    return { kind, text: `${place} ${JSON.stringify(rest)}`, ttlSeconds: mark === undefined ? null : secondsOf(mark) };
  });
}

/** The lifetimes of the body's cache marks in seconds, in order. */
export function lifetimes(body: AnthropicBody): Lifetime[] {
  return placed(body).flatMap(({ block }) => (block.cache_control === undefined ? [] : [secondsOf(block.cache_control)]));
}

/** @throws {HeadfastError} `model_refused` for more than four marks, or a 1 h mark after a 5 m one. */
export function checkBreakpoints(marks: readonly Lifetime[]): void {
  if (marks.length > breakpointsMax)
    throw badRequest(`a maximum of ${breakpointsMax} blocks with cache_control may be provided, found ${marks.length}`);
  if (marks.some((mark, i) => mark === 3600 && marks[i - 1] === 300))
    throw badRequest("a cache_control with ttl 1h must not come after one with ttl 5m");
}

/** A provider's 400: the same body gives the same answer. */
export function badRequest(reason: string, cause?: unknown): HeadfastError {
  return new HeadfastError("model_refused", `the provider refused the request (400): ${reason}`, {
    data: { status: 400 },
    ...(cause === undefined ? {} : { cause }),
  });
}

interface Placed {
  kind: PromptBlock["kind"];
  place: string;
  block: { cache_control?: CacheControl };
}

/** A message's first block carries a plus: where a message ends is part of what is cached. */
function placed(body: AnthropicBody): Placed[] {
  return [
    ...(body.tools ?? []).map((block): Placed => ({ kind: "tool", place: "tools", block })),
    ...(body.system ?? []).map((block): Placed => ({ kind: "system", place: "system", block })),
    ...body.messages.flatMap(({ role, content }) =>
      content.map((block, i): Placed => ({ kind: block.type, place: i === 0 ? `+${role}` : role, block })),
    ),
  ];
}

function secondsOf(mark: CacheControl): Lifetime {
  return mark.ttl === "1h" ? 3600 : 300;
}
