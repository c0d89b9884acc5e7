import { z } from "zod";
import { limits } from "../domain/limits.ts";
import { memoryPath } from "../domain/memory-path.ts";
import type { Tool } from "../domain/ports.ts";
import { boundText } from "./bounded.ts";
import { defineTool } from "./define-tool.ts";
import { linesOf, memoryOf, shownPath, textOf, toolFailed } from "./memory-text.ts";

/** Room for the note on what was left out. */
const noteBytes = 256;

/** `read`: a file's text, or a range of its lines. */
export const readTool: Tool = defineTool({
  name: "read",
  description: `Reads a text file of the memory under /memory. Gives at most ${limits.toolLinesMax} lines; for more, call it again with offset.`,
  input: z.object({
    path: z.string().describe("The file, such as /memory/notes.md"),
    offset: z.int().min(1).optional().describe("The first line to give, counted from 1"),
    limit: z.int().min(1).max(limits.toolLinesMax).optional().describe("How many lines to give"),
  }),
  async run({ path, offset = 1, limit = limits.toolLinesMax }, context) {
    const clean = memoryPath(path);
    const bytes = await memoryOf(context).files.read(clean);
    const text = textOf(bytes);
    if (text === null) return `[${shownPath(clean)} is not text: ${bytes.length} bytes]`;
    const lines = linesOf(text);
    if (lines.length === 0) return `[${shownPath(clean)} is empty]`;
    if (offset > lines.length) throw toolFailed(`${shownPath(clean)} has ${lines.length} lines, line ${offset} is beyond its end`);
    return range(text, lines, offset, limit);
  },
});

/** The lines asked for, byte for byte, as far as they fit; a note tells where to go on. */
function range(text: string, lines: readonly string[], offset: number, limit: number): string {
  const count = Math.min(fitting(lines, offset - 1), limit, lines.length - offset + 1);
  if (count === lines.length && Buffer.byteLength(text) <= limits.toolResultBytesMax) return text;
  const last = offset + count - 1;
  const asked = lines.slice(offset - 1, last).join("\n");
  const shown = boundText(asked, limits.toolResultBytesMax - noteBytes);
  const cut = shown === asked ? "" : `; line ${last} is too long to be read whole, grep can search it`;
  const more = last < lines.length ? `; go on with offset ${last + 1}` : "";
  return `${shown}\n[lines ${offset} to ${last} of ${lines.length}${cut}${more}]`;
}

/** How many lines from `from` on fit into one result: at least one, which is cut if it must be. */
function fitting(lines: readonly string[], from: number): number {
  let bytes = 0;
  for (let i = from; i < lines.length; i += 1) {
    bytes += Buffer.byteLength(lines[i] ?? "") + 1;
    if (bytes > limits.toolResultBytesMax - noteBytes) return Math.max(1, i - from);
  }
  return lines.length - from;
}
