/** What the file tools share: the memory of a call, its files as text, and paths as they are shown. */
import { HeadfastError } from "../domain/errors.ts";
import { memoryRoot } from "../domain/memory-path.ts";
import type { ToolContext, ToolMemory } from "../domain/ports.ts";

/** @throws {HeadfastError} `tool_failed` for a bot without a Memory Repository. */
export function memoryOf(context: ToolContext): ToolMemory {
  if (context.memory === undefined) throw toolFailed("this bot has no Memory Repository");
  return context.memory;
}

/** An error result for the model. */
export function toolFailed(message: string): HeadfastError {
  return new HeadfastError("tool_failed", message);
}

/** A path as the model may send it back; control characters are written as bytes, so that no name makes a line of its own. */
export function shownPath(path: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  const plain = path.replace(/[\u0000-\u001f\u007f]/g, (char) => `\\x${char.charCodeAt(0).toString(16).padStart(2, "0")}`);
  return `${memoryRoot}/${plain}`;
}

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The text of a file, byte for byte, or `null` for what is no UTF-8 text. */
export function textOf(bytes: Uint8Array): string | null {
  if (bytes.includes(0)) return null;
  try {
    return strict.decode(bytes);
  } catch {
    return null;
  }
}

/** Lines without their ends; a last line end opens no further line. */
export function linesOf(text: string): string[] {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}
