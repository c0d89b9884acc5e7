/**
 * The wire format of Anthropic Messages, as pure text. The *cached sequence* is
 *
 *     "tools":[…],"system":[…],"messages":[  message , message , …
 *
 * (`tools` and `system` only where there is one). The body is that text with pieces put in: the head with model and
 * `max_tokens` before it, `]}` behind it, and up to four cache marks. Every piece put in is reported as a cut, so the
 * body without its cuts *is* the sequence, by construction (I2).
 *
 * Cache marks are a function of prefix, messages and `settled` only:
 * 1. the last tool (1 h), 2. the last system block (1 h), 3. the last message before this turn (5 m),
 * 4. the last message (5 m). A provider wants longer lifetimes first, so mark 1 is never shorter than mark 2.
 */
import { HeadfastError } from "../domain/errors.ts";
import type { AssistantMessage, Message, ToolMessage, ToolResult, UserMessage } from "../domain/messages.ts";
import type { BodyOptions, Dialect, PrefixParts, ToolSpec } from "../domain/ports.ts";
import { jsonObjectText, jsonString, jsonValue } from "./json-text.ts";
import { blankMark, blockText, harmless, isBlank, notBlank } from "./markup.ts";

const messagesOpen = '"messages":[';
const systemOpen = '"system":[';
const toolsOpen = '"tools":[';
/** How every message ends: the last block's brace, the content's bracket, the message's brace. */
const messageEnd = "}]}";
const mark5m = ',"cache_control":{"type":"ephemeral"}';
const mark1h = ',"cache_control":{"type":"ephemeral","ttl":"1h"}';

/** A piece of the body that is not part of the cached sequence, and where in the sequence it is put in. */
interface Piece {
  at: number;
  text: string;
}

/** The dialect `anthropic-messages`. */
export const anthropicDialect: Dialect = { id: "anthropic-messages", separator: ",", renderPrefix, renderMessage, renderBody };

function renderPrefix(parts: PrefixParts): string {
  const tools = parts.tools.map(toolText);
  const system = systemTexts(parts).map(textBlock);
  const toolsPart = tools.length === 0 ? "" : `${toolsOpen}${tools.join(",")}],`;
  const systemPart = system.length === 0 ? "" : `${systemOpen}${system.join(",")}],`;
  return toolsPart + systemPart + messagesOpen;
}

function toolText(tool: ToolSpec): string {
  return `{"name":${jsonString(tool.name)},"description":${jsonString(tool.description)},"input_schema":${jsonValue(tool.inputSchema)}}`;
}

/**
 * Role prompts, then the persona, byte for byte (I6). A block of only white space is refused by the provider, so such a
 * text joins the block before it, or else the one after it; a prefix of nothing but white space has no system text.
 */
function systemTexts(parts: PrefixParts): string[] {
  const texts: string[] = [];
  let waiting = "";
  for (const text of [...parts.rolePrompts, parts.persona ?? ""]) {
    const last = texts.length - 1;
    if (!isBlank(text)) texts.push(waiting + text);
    else if (last >= 0) texts[last] += text;
    waiting = texts.length === 0 ? waiting + text : "";
  }
  return texts;
}

function renderMessage(message: Message): string {
  switch (message.role) {
    case "user":
      return messageText("user", userBlocks(message));
    case "assistant":
      return messageText("assistant", assistantBlocks(message));
    case "tool":
      return messageText("user", toolBlocks(message));
  }
}

/** A message that says nothing gets the blank mark: no provider takes an empty one, and the conversation must go on. */
function messageText(role: "user" | "assistant", blocks: string[]): string {
  const content = blocks.length === 0 ? [textBlock(blankMark)] : blocks;
  return `{"role":"${role}","content":[${content.join(",")}]}`;
}

/** Notices, then notes, then what the person said. */
function userBlocks(message: UserMessage): string[] {
  const order = { notice: 0, note: 1, input: 2 };
  const sorted = [...message.blocks].sort((a, b) => order[a.type] - order[b.type]);
  return sorted.map((block) => textBlock(blockText(block)));
}

function assistantBlocks(message: AssistantMessage): string[] {
  const text = isBlank(message.text) ? [] : [textBlock(message.text)];
  const calls = message.toolCalls.map(
    (call) => `{"type":"tool_use","id":${jsonString(call.id)},"name":${jsonString(call.name)},"input":${jsonObjectText(call.arguments)}}`,
  );
  return [...text, ...calls];
}

function toolBlocks(message: ToolMessage): string[] {
  return message.results.map((result) => resultBlock(result));
}

function resultBlock(result: ToolResult): string {
  const error = result.isError ? ',"is_error":true' : "";
  return `{"type":"tool_result","tool_use_id":${jsonString(result.id)},"content":${jsonString(notBlank(harmless(result.text)))}${error}}`;
}

function textBlock(text: string): string {
  return `{"type":"text","text":${jsonString(text)}}`;
}

/** @throws {HeadfastError} `dialect_differs` for a prefix or a message that this dialect did not render. */
function renderBody(prefix: string, messages: readonly string[], options: BodyOptions): { body: string; cuts: [number, number][] } {
  const sequence = prefix + messages.join(anthropicDialect.separator);
  const head = `{"model":${jsonString(options.model)},"max_tokens":${JSON.stringify(options.maxTokens)},`;
  return weave(sequence, [
    { at: 0, text: head },
    ...prefixMarks(prefix),
    ...messageMarks(prefix, messages, options.settled),
    { at: sequence.length, text: "]}" },
  ]);
}

function weave(sequence: string, pieces: readonly Piece[]): { body: string; cuts: [number, number][] } {
  const cuts: [number, number][] = [];
  let body = "";
  let at = 0;
  for (const piece of pieces) {
    body += sequence.slice(at, piece.at);
    cuts.push([body.length, body.length + piece.text.length]);
    body += piece.text;
    at = piece.at;
  }
  return { body: body + sequence.slice(at), cuts };
}

function prefixMarks(prefix: string): Piece[] {
  if (!prefix.endsWith(messagesOpen)) throw differs("the prefix");
  const end = prefix.length - messagesOpen.length - "}],".length;
  if (end < 0) return [];
  const toolsEnd = endOfTools(prefix);
  const ends = toolsEnd === undefined || toolsEnd === end ? [end] : [toolsEnd, end];
  return ends.map((at) => ({ at, text: mark1h }));
}

/**
 * Where the last tool's closing brace stands. Inside a system text every quote is escaped, so the last `],"system":[` is
 * the real one, unless there is no system and a schema holds those letters: then what stands before it is not whole.
 */
function endOfTools(prefix: string): number | undefined {
  if (!prefix.startsWith(toolsOpen)) return undefined;
  const at = prefix.lastIndexOf(`],${systemOpen}`);
  const whole = at > 0 && isJson(`{${prefix.slice(0, at)}]}`);
  return (whole ? at : prefix.length - messagesOpen.length - "],".length) - 1;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function messageMarks(prefix: string, messages: readonly string[], settled: number): Piece[] {
  const counts = settled > 0 && settled < messages.length ? [settled, messages.length] : [messages.length];
  return counts.filter((count) => count > 0).map((count) => ({ at: prefix.length + endOfMessage(messages, count), text: mark5m }));
}

/** Where the last block of the first `count` messages closes, counted from the first message. */
function endOfMessage(messages: readonly string[], count: number): number {
  if (!messages[count - 1]?.endsWith(messageEnd)) throw differs(`message ${count}`);
  let length = count - 1;
  for (let i = 0; i < count; i += 1) length += messages[i]?.length ?? 0;
  return length - messageEnd.length;
}

function differs(what: string): HeadfastError {
  return new HeadfastError(
    "dialect_differs",
    `${what} was not rendered by the dialect ${anthropicDialect.id}: render it again from its neutral form`,
    { data: { dialect: anthropicDialect.id } },
  );
}
