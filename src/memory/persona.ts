/**
 * PERSONA.md's bytes → the persona. The body is kept byte for byte (I1): only one byte-order mark and the front matter go,
 * and bytes that are not UTF-8 become U+FFFD, once, here. Front matter is never executed and never part of the body (I8);
 * what cannot be told apart from it is left out, with a warning. docs/persona.md has the table.
 */
import { isMap, parseDocument } from "yaml";
import { HeadfastError } from "../domain/errors.ts";
import { limits } from "../domain/limits.ts";

export interface SplitPersona {
  /** Everything behind the front matter, unchanged. */
  body: string;
  /** For the operator: what was odd, and what was done about it. */
  warnings: string[];
}

/** Splits a whole PERSONA.md. @throws {HeadfastError} `input_too_large` for a body over `limits.personaBytesMax`. */
export function splitPersona(bytes: Uint8Array): SplitPersona {
  const warnings: string[] = [];
  const text = textOf(bytes, warnings);
  const body = withoutFrontMatter(text, warnings);
  if (body.includes("\0")) warnings.push("the body holds NUL characters; they are kept");
  const size = Buffer.byteLength(body);
  if (size > limits.personaBytesMax) throw tooLarge("PERSONA.md's body", size, limits.personaBytesMax);
  return { body, warnings };
}

/** The error of a persona that no request should carry. */
export function tooLarge(what: string, bytes: number, bytesMax: number): HeadfastError {
  return new HeadfastError("input_too_large", `${what} has ${bytes} bytes, the limit is ${bytesMax}`, { data: { bytes, bytesMax } });
}

function textOf(bytes: Uint8Array, warnings: string[]): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const text = buffer.toString("utf8");
  if (text.includes("\uFFFD") && !Buffer.from(text).equals(buffer))
    warnings.push("PERSONA.md is not UTF-8; each invalid sequence became U+FFFD");
  return text.startsWith("\uFEFF") ? text.slice(1) : text;
}

/** Drops the front matter at the very start, and what reads like more of it right behind or after blank lines. */
function withoutFrontMatter(text: string, warnings: string[]): string {
  let rest = text;
  for (let first = true; ; first = false) {
    const block = blockAtStart(rest);
    if (block === undefined) return rest;
    const certain = first && block.certain;
    if (block.rest === undefined) return certain ? unclosed(warnings) : rest;
    const yaml = kindOfYaml(block.yaml);
    if (!certain && yaml === "prose") return rest;
    if (yaml === "invalid") warnings.push("the front matter is not valid YAML; it is left out all the same");
    if (!certain) warnings.push("a second block, or one behind blank lines, reads like front matter; it is left out");
    rest = block.rest;
  }
}

function unclosed(warnings: string[]): string {
  warnings.push(
    "the front matter is never closed, so all of PERSONA.md belongs to it: the persona is empty. Close it with a line of three dashes.",
  );
  return "";
}

interface Block {
  /** The fence is the very first line and plain: nothing but front matter begins so. */
  certain: boolean;
  yaml: string;
  /** What stands behind the closing fence; absent where there is none. */
  rest?: string;
}

/** Three dashes on a line of their own; blank lines, an indent, or a language's name make it doubtful. */
const opening = /^([\s\uFEFF]*)---[ \t]*([A-Za-z]*)[ \t]*(?:\r\n|\n|\r|$)/u;
const closing = /(?:^|\r\n|\n|\r)(?:---|\.\.\.)[ \t]*(?:\r\n|\n|\r|$)/u;

function blockAtStart(text: string): Block | undefined {
  const open = opening.exec(text);
  if (open === null) return undefined;
  const certain = open[1] === "" && open[2] === "";
  const behind = text.slice(open[0].length);
  const close = closing.exec(behind);
  if (close === null) return { certain, yaml: behind };
  return { certain, yaml: behind.slice(0, close.index), rest: behind.slice(close.index + close[0].length) };
}

/** Parsed only to be judged; nothing in it is resolved or run. */
function kindOfYaml(yaml: string): "mapping" | "prose" | "invalid" {
  try {
    const document = parseDocument(yaml, { logLevel: "silent" });
    if (document.errors.length > 0) return "invalid";
    return isMap(document.contents) ? "mapping" : "prose";
  } catch {
    // The parser gave up, e.g. on nesting too deep for its stack.
    return "invalid";
  }
}
