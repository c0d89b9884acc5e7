/** What a provider of Anthropic Messages refuses, so that a test against the scripted model fails where the real one would. */
import {
  type AnthropicBody,
  badRequest,
  type ContentBlock,
  checkBreakpoints,
  lifetimes,
  parseBody,
  type ToolBlock,
} from "./anthropic-body.ts";
import { isBlank } from "./markup.ts";

const knownFields = new Set(["model", "max_tokens", "tools", "system", "messages", "stream"]);
/** Names of tools and ids of calls as the provider takes them. */
export const toolNamePattern = /^[a-zA-Z0-9_-]{1,64}$/;
const callIdPattern = /^[a-zA-Z0-9_-]+$/;

/** Reads a body. @throws {HeadfastError} `model_refused` with the reason and the place. */
export function checkBody(text: string): AnthropicBody {
  const body = parseBody(text);
  for (const field of Object.keys(body)) if (!knownFields.has(field)) throw badRequest(`${field}: extra inputs are not permitted`);
  checkStrings(body, "body");
  if (typeof body.model !== "string" || body.model === "") throw badRequest("model: a name is required");
  if (!Number.isInteger(body.max_tokens) || body.max_tokens < 1) throw badRequest("max_tokens: must be a whole number above 0");
  checkTools(body.tools ?? []);
  for (const [i, block] of (body.system ?? []).entries()) checkText(block.text, `system.${i}`);
  checkMessages(body.messages);
  checkBreakpoints(lifetimes(body));
  return body;
}

/** A strict reader takes no lone surrogate, in whatever way it is written. */
function checkStrings(value: unknown, place: string): void {
  if (typeof value === "string" && !value.isWellFormed()) throw badRequest(`${place}: the text is not valid Unicode`);
  if (typeof value !== "object" || value === null) return;
  for (const [key, item] of Object.entries(value)) {
    checkStrings(key, place);
    checkStrings(item, `${place}.${key}`);
  }
}

function checkTools(tools: readonly ToolBlock[]): void {
  const names = new Set<string>();
  for (const [i, tool] of tools.entries()) {
    if (!toolNamePattern.test(tool.name)) throw badRequest(`tools.${i}.name: must match ${toolNamePattern.source}`);
    if (names.has(tool.name)) throw badRequest(`tools.${i}.name: tool names must be unique`);
    if (tool.input_schema?.type !== "object") throw badRequest(`tools.${i}.input_schema.type: must be "object"`);
    names.add(tool.name);
  }
}

function checkMessages(messages: AnthropicBody["messages"]): void {
  if (!Array.isArray(messages) || messages.length === 0) throw badRequest("messages: at least one message is required");
  for (const [i, { role, content }] of messages.entries()) {
    if (role !== "user" && role !== "assistant") throw badRequest(`messages.${i}.role: must be user or assistant`);
    if (!Array.isArray(content) || content.length === 0) throw badRequest(`messages.${i}.content: must not be empty`);
    for (const [j, block] of content.entries()) checkBlock(block, role, `messages.${i}.content.${j}`);
  }
  if (messages[0]?.role !== "user") throw badRequest("messages.0: the first message must be the user's");
  if (messages.at(-1)?.role !== "user") throw badRequest("messages: the conversation must end with a user message");
  checkCalls(asTurns(messages));
}

function checkBlock(block: ContentBlock, role: string, place: string): void {
  if (block.type === "text") checkText(block.text, place);
  else if (block.type === "tool_use" && role === "assistant") checkToolUse(block, place);
  else if (block.type === "tool_result" && role === "user") checkText(block.content, place);
  else throw badRequest(`${place}.type: ${JSON.stringify(block.type)} is not allowed for the role ${role}`);
}

function checkText(text: unknown, place: string): void {
  if (typeof text !== "string" || isBlank(text)) throw badRequest(`${place}: text content blocks must contain non-whitespace text`);
}

function checkToolUse(block: Extract<ContentBlock, { type: "tool_use" }>, place: string): void {
  if (typeof block.id !== "string" || !callIdPattern.test(block.id)) throw badRequest(`${place}.id: must match ${callIdPattern.source}`);
  if (typeof block.name !== "string" || block.name === "") throw badRequest(`${place}.name: is required`);
  if (typeof block.input !== "object" || block.input === null || Array.isArray(block.input))
    throw badRequest(`${place}.input: must be an object`);
}

/** Consecutive messages of one role are one turn to the provider. */
function asTurns(messages: AnthropicBody["messages"]): ContentBlock[][] {
  const turns: ContentBlock[][] = [];
  for (const [i, { role, content }] of messages.entries()) {
    if (messages[i - 1]?.role === role) turns.at(-1)?.push(...content);
    else turns.push([...content]);
  }
  return turns;
}

/** Each call has an id of its own and is answered once, at the head of the very next turn, and only there. */
function checkCalls(turns: readonly ContentBlock[][]): void {
  for (const [i, turn] of turns.entries()) {
    const asked = callIds(turns[i - 1] ?? []);
    const answers = turn.flatMap((block) => (block.type === "tool_result" ? [block.tool_use_id] : []));
    const missing = asked.filter((id) => !answers.includes(id));
    const unasked = answers.filter((id, at) => !asked.includes(id) || answers.indexOf(id) !== at);
    if (missing.length > 0) throw badRequest(`tool_use ids were found without tool_result blocks immediately after: ${missing.join(", ")}`);
    if (unasked.length > 0) throw badRequest(`unexpected tool_use_id in tool_result blocks: ${unasked.join(", ")}`);
    if (turn.slice(0, answers.length).some((block) => block.type !== "tool_result"))
      throw badRequest("tool_result blocks must stand before other content");
  }
  const ids = turns.flatMap(callIds);
  if (new Set(ids).size !== ids.length) throw badRequest(`tool_use ids must be unique: ${ids.find((id, at) => ids.indexOf(id) !== at)}`);
}

function callIds(turn: readonly ContentBlock[]): string[] {
  return turn.flatMap((block) => (block.type === "tool_use" ? [block.id] : []));
}
