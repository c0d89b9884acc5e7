/** What a scripted model is told to answer: plain text, tool calls, or one of a provider's bad days. */
import { HeadfastError } from "../domain/errors.ts";
import type { AnthropicBody } from "./anthropic-body.ts";

/** One call as a script sees it. */
export interface ScriptRequest {
  /** The raw body. */
  body: string;
  /** The same, read. */
  parsed: AnthropicBody;
  /** What the person said last, without the line that says who spoke. */
  lastUserText: string;
  /** The results that end the conversation; empty where a person spoke last. */
  toolResults: { id: string; text: string; isError: boolean }[];
  /** 1 for this model's first call, 2 for its second, whatever the session. */
  call: number;
  step: number;
  turnId: string;
  session: string;
  signal: AbortSignal;
}

export interface PlainReply {
  text?: string;
  /** `args` as an object, or as raw text to send what is no JSON. */
  tools?: { name: string; args: Record<string, unknown> | string }[];
}

/** A reply that takes time, comes in pieces, or never comes. */
export type Act =
  | { act: "hang" }
  | { act: "slow"; ms: number; reply: Reply }
  | { act: "stream"; parts: readonly string[]; thenFail: string | undefined };

/** An `Error` is thrown as it is. */
export type Reply = string | PlainReply | Error | Act;
export type ScriptFunction = (request: ScriptRequest) => Reply | Promise<Reply>;
/** A list gives one reply a call, in order; a call beyond its end is refused. */
export type Script = ScriptFunction | readonly Reply[];

/** "Come back later": 429 or overload. `ms` as a provider's retry-after; without it the provider did not say when. */
export function later(ms?: number): HeadfastError {
  return new HeadfastError("model_later", "the scripted provider said: later", ms === undefined ? {} : { retryAfterMs: ms });
}

/** A failure that another attempt may not meet. */
export function fail(message: string): HeadfastError {
  return new HeadfastError("model_failed", message);
}

/** A refusal for good: the same call gives the same answer. */
export function refuse(message: string): HeadfastError {
  return new HeadfastError("model_refused", message);
}

/** No answer until the call is aborted. */
export function hang(): Act {
  return { act: "hang" };
}

/** The reply after `ms` of the model's `system` port. */
export function slow(ms: number, reply: Reply): Act {
  return { act: "slow", ms, reply };
}

/** The parts as deltas, one by one; then their whole as the answer, or, with `thenFail`, a failure of that message: half a stream. */
export function stream(parts: readonly string[], thenFail?: string): Act {
  return { act: "stream", parts, thenFail };
}
