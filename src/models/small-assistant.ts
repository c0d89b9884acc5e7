/**
 * The scripted model's default: a small assistant without a provider. It answers the same request with the same words,
 * says what it was told of its memory, and uses file tools when asked in plain words.
 */
import { createHash } from "node:crypto";
import type { AnthropicBody, ToolUseBlock } from "./anthropic-body.ts";
import type { PlainReply, ScriptRequest } from "./script.ts";

interface Command {
  pattern: RegExp;
  tool: string;
  args(match: RegExpMatchArray): Record<string, unknown>;
}

const commands: readonly Command[] = [
  { pattern: /^read\s+(\S+)$/i, tool: "read", args: (match) => ({ path: match[1] }) },
  { pattern: /^write\s+([^\s:]+)\s*:\s*([\s\S]+)$/i, tool: "write", args: (match) => ({ path: match[1], content: `${match[2]}\n` }) },
  {
    pattern: /^remember\s+(?:that\s+)?([\s\S]+)$/i,
    tool: "write",
    args: (match) => ({ path: rememberedPath(match[1] ?? ""), content: `${match[1]}\n` }),
  },
  { pattern: /^(?:list|ls)(?:\s+files)?$/i, tool: "glob", args: () => ({ pattern: "**" }) },
  { pattern: /^(?:find|search|grep)\s+(?:for\s+)?([\s\S]+)$/i, tool: "grep", args: (match) => ({ pattern: match[1] }) },
];

const help = "You can ask me to `read notes.md`, `write notes.md: some text`, `remember something`, `list` or `find word`.";

/** The default script. */
export function smallAssistant(request: ScriptRequest): PlainReply {
  if (request.toolResults.length > 0) return { text: afterTools(request) };
  const said = request.lastUserText.trim();
  for (const { pattern, tool, args } of commands) {
    const match = pattern.exec(said);
    if (match !== null) return useTool(request.parsed, tool, args(match));
  }
  return { text: [...told(request.parsed), plainAnswer(request.parsed, said)].join("\n") };
}

function useTool(body: AnthropicBody, name: string, args: Record<string, unknown>): PlainReply {
  const known = (body.tools ?? []).some((tool) => tool.name === name);
  return known ? { tools: [{ name, args }] } : { text: `I have no tool named ${name}, so I cannot do that.` };
}

function plainAnswer(body: AnthropicBody, said: string): string {
  if (/^(?:help|what can you do)\b/i.test(said)) return help;
  if (/^who are you\b/i.test(said)) return body.system?.at(-1)?.text.trim() ?? "I am a small assistant without a persona.";
  const turns = body.messages.filter(({ role, content }) => role === "user" && content.some((block) => block.type === "text")).length;
  return turns === 1 ? `You said: ${said}\n${help}` : `You said: ${said}`;
}

/** What Headfast told in the newest message: that something in the memory changed, or a host's note. */
function told(body: AnthropicBody): string[] {
  const texts = (body.messages.at(-1)?.content ?? []).flatMap((block) => (block.type === "text" ? [block.text] : []));
  return texts.flatMap((text) => {
    const match = /^<headfast:(notice|note)>\n([\s\S]*)\n<\/headfast:\1>$/.exec(text);
    return match === null ? [] : [`(I was told: ${match[2]})`];
  });
}

function afterTools(request: ScriptRequest): string {
  return request.toolResults
    .map(({ id, text, isError }) => (isError ? `That did not work: ${text}` : `${doneWith(callOf(request.parsed, id))}\n${text}`))
    .join("\n\n");
}

function callOf(body: AnthropicBody, id: string): ToolUseBlock | undefined {
  const blocks = body.messages.at(-2)?.content ?? [];
  return blocks.find((block): block is ToolUseBlock => block.type === "tool_use" && block.id === id);
}

function doneWith(call: ToolUseBlock | undefined): string {
  const subject = String(call?.input.path ?? call?.input.pattern ?? "");
  const said: Record<string, string> = {
    read: `${subject} says:`,
    write: "Done.",
    glob: "My memory holds:",
    grep: `I found for ${subject}:`,
  };
  return said[call?.name ?? ""] ?? "The tool says:";
}

/** A file of its own for each thing remembered; the same thing twice is the same file. */
function rememberedPath(text: string): string {
  const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  const hash = createHash("sha256").update(text).digest("hex").slice(0, 6);
  const name = [...words.slice(0, 5).join("-")].slice(0, 40).join("");
  return `remembered/${name === "" ? hash : `${name}-${hash}`}.md`;
}
