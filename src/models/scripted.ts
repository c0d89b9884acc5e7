/**
 * A model without a provider, for tests, `headfast chat` and the demo. It is a whole `Model`: it reads and checks each
 * body as a provider would (what that refuses with 400 is `model_refused` here), keeps the raw bytes, streams, and
 * obeys its signal at once.
 */
import { createHash } from "node:crypto";
import { HeadfastError } from "../domain/errors.ts";
import type { AssistantMessage } from "../domain/messages.ts";
import type { Dialect, Model, ModelReply, ModelRequest, System } from "../domain/ports.ts";
import { unlessAborted } from "./aborted.ts";
import type { AnthropicBody } from "./anthropic-body.ts";
import { checkBody } from "./anthropic-check.ts";
import { anthropicDialect } from "./anthropic-dialect.ts";
import { withoutUserTag } from "./markup.ts";
import { type Act, fail, type Reply, refuse, type Script, type ScriptFunction, type ScriptRequest } from "./script.ts";
import { smallAssistant } from "./small-assistant.ts";

export interface ScriptedOptions {
  /** Default `scripted`; the billing simulator finds prices by it. */
  name?: string;
  /** Default 4,096. */
  maxTokens?: number;
  /** Default: the model's name. */
  limitKey?: string;
  /** Default Anthropic Messages. */
  dialect?: Dialect;
  /** Reads and checks a body; for a dialect whose bodies are not Anthropic's. @throws `model_refused` */
  read?: (body: string) => AnthropicBody;
  /** What `slow` sleeps with. */
  system?: Pick<System, "sleep">;
  /** How many requests are kept, the newest; default 10,000. */
  keep?: number;
}

/** One call as it came in, before it was checked or answered. */
export interface RecordedRequest {
  body: string;
  session: string;
  turnId: string;
  step: number;
}

export interface ScriptedModel extends Model {
  /** The newest calls, oldest first. */
  readonly requests: readonly RecordedRequest[];
  /** All calls so far. */
  readonly calls: number;
}

/** A model that answers by `script`; without one, a small assistant that echoes and uses file tools when asked in plain words. */
export function scriptedModel(script: Script = smallAssistant, options: ScriptedOptions = {}): ScriptedModel {
  const { name = "scripted", maxTokens = 4096, dialect = anthropicDialect, read = checkBody, keep = 10_000, system } = options;
  const answer = typeof script === "function" ? script : inOrder(script);
  const requests: RecordedRequest[] = [];
  let calls = 0;
  const call = (request: ModelRequest): Promise<ModelReply> =>
    unlessAborted(request.signal, async () => {
      calls += 1;
      requests.push({ body: request.body, session: request.session, turnId: request.turnId, step: request.step });
      if (requests.length > keep) requests.shift();
      const asked = scriptRequest(request, read(request.body), calls);
      return perform(await answer(asked), request, system);
    });
  return {
    name,
    dialect,
    maxTokens,
    limitKey: options.limitKey ?? name,
    call,
    requests,
    get calls() {
      return calls;
    },
  };
}

function inOrder(replies: readonly Reply[]): ScriptFunction {
  return ({ call }) => replies[call - 1] ?? refuse(`the script has ${replies.length} replies, this is call ${call}`);
}

function scriptRequest(request: ModelRequest, parsed: AnthropicBody, call: number): ScriptRequest {
  const { body, step, turnId, session, signal } = request;
  return { body, parsed, lastUserText: lastUserText(parsed), toolResults: toolResults(parsed), call, step, turnId, session, signal };
}

function lastUserText(body: AnthropicBody): string {
  const texts = body.messages.flatMap(({ role, content }) =>
    role === "user" ? content.flatMap((block) => (block.type === "text" ? [block.text] : [])) : [],
  );
  return withoutUserTag(texts.at(-1) ?? "");
}

function toolResults(body: AnthropicBody): ScriptRequest["toolResults"] {
  return (body.messages.at(-1)?.content ?? []).flatMap((block) =>
    block.type === "tool_result" ? [{ id: block.tool_use_id, text: block.content, isError: block.is_error === true }] : [],
  );
}

async function perform(reply: Reply, request: ModelRequest, system: Pick<System, "sleep"> | undefined): Promise<ModelReply> {
  if (reply instanceof Error) throw reply;
  if (typeof reply === "string") return perform({ text: reply }, request, system);
  if ("act" in reply) return performAct(reply, request, system);
  if (reply.text && !request.signal.aborted) request.onDelta(reply.text);
  const calls = (reply.tools ?? []).map(({ name, args }, i) => ({
    id: callId(request.body, i),
    name,
    arguments: typeof args === "string" ? args : JSON.stringify(args),
  }));
  return modelReply(request.body, { role: "assistant", text: reply.text ?? "", toolCalls: calls });
}

async function performAct(act: Act, request: ModelRequest, system: Pick<System, "sleep"> | undefined): Promise<ModelReply> {
  if (act.act === "hang") return new Promise<never>(() => {});
  if (act.act === "stream") return performStream(act, request);
  if (system === undefined) throw new HeadfastError("configuration", "a slow reply needs the scripted model's option `system`");
  await system.sleep(act.ms, request.signal);
  return perform(act.reply, request, system);
}

async function performStream(act: Extract<Act, { act: "stream" }>, request: ModelRequest): Promise<ModelReply> {
  for (const part of act.parts) {
    if (!request.signal.aborted) request.onDelta(part);
    await undefined;
  }
  if (act.thenFail !== undefined) throw fail(act.thenFail);
  return modelReply(request.body, { role: "assistant", text: act.parts.join(""), toolCalls: [] });
}

/** The usage is an estimate, four bytes a token, with nothing cached; `withBilling` reports what a provider would. */
function modelReply(body: string, message: AssistantMessage): ModelReply {
  const output = message.text.length + message.toolCalls.reduce((sum, call) => sum + call.name.length + call.arguments.length, 0);
  return { message, usage: { fresh: Math.ceil(Buffer.byteLength(body) / 4), cacheRead: 0, cacheWrite: 0, output: Math.ceil(output / 4) } };
}

/** The same for the same body, and unlike any other of the conversation, whichever worker answers. */
function callId(body: string, index: number): string {
  return `toolu_${createHash("sha256").update(`${index} ${body}`).digest("hex").slice(0, 24)}`;
}
