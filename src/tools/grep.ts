import { z } from "zod";
import { isHeadfastError } from "../domain/errors.ts";
import { limits } from "../domain/limits.ts";
import { memoryPath } from "../domain/memory-path.ts";
import type { Tool, ToolContext, ToolMemory } from "../domain/ports.ts";
import { boundLine, Listing } from "./bounded.ts";
import { defineTool } from "./define-tool.ts";
import { linesOf, memoryOf, shownPath, textOf, toolFailed } from "./memory-text.ts";
import { RegexThread } from "./regex-thread.ts";

/** Finds the indexes of the lines that match. */
type Matcher = (lines: readonly string[]) => number[] | Promise<number[]>;

/** `grep`: lines that hold a text, or match a regular expression. */
export const grepTool: Tool = defineTool({
  name: "grep",
  description: "Searches the text files of the memory under /memory, line by line. Gives each match as path:line: text.",
  input: z.object({
    pattern: z.string().min(1).describe("The text to find, or with regex a JavaScript regular expression"),
    path: z.string().optional().describe("A folder or file to search; without it the whole memory"),
    regex: z.boolean().optional().describe("Whether pattern is a regular expression; without it plain text"),
    ignore_case: z.boolean().optional(),
  }),
  async run({ pattern, path = "", regex = false, ignore_case: ignoreCase = false }, context) {
    if (Buffer.byteLength(pattern) > limits.toolPatternBytesMax)
      throw toolFailed(`the pattern is longer than ${limits.toolPatternBytesMax} bytes`);
    const memory = memoryOf(context);
    const files = await filesAt(memory, memoryPath(path));
    if (!regex) return search(memory, files, plainMatcher(pattern, ignoreCase), context);
    const thread = new RegexThread(pattern, ignoreCase ? "i" : "");
    try {
      return await search(memory, files, (lines) => thread.match(lines, context.signal), context);
    } finally {
      await thread.close();
    }
  },
});

function plainMatcher(pattern: string, ignoreCase: boolean): Matcher {
  const folded = ignoreCase ? (text: string) => text.toLowerCase() : (text: string) => text;
  const wanted = folded(pattern);
  return (lines) => lines.flatMap((line, i) => (folded(line).includes(wanted) ? [i] : []));
}

interface Files {
  paths: string[];
  more: boolean;
}

/** The files below a folder, or the one file. */
async function filesAt(memory: ToolMemory, path: string): Promise<Files> {
  try {
    return await memory.files.list(path, limits.manifestPathsMax);
  } catch (error) {
    if (path === "" || !isHeadfastError(error, "invalid_input")) throw error;
    await memory.files.read(path); // neither a folder nor a file: says so
    return { paths: [path], more: false };
  }
}

async function search(memory: ToolMemory, files: Files, match: Matcher, context: ToolContext): Promise<string> {
  const listing = new Listing();
  let bytesLeft = limits.toolSearchBytesMax;
  let searched = 0;
  let skipped = 0;
  let cut = false;
  for (const path of files.paths) {
    context.signal.throwIfAborted();
    if (bytesLeft <= 0) break;
    const bytes = await readOrSkip(memory, path);
    const text = bytes === null ? null : textOf(bytes);
    bytesLeft -= bytes?.length ?? 0;
    searched += 1;
    if (text === null) skipped += 1;
    else if (await addMatches(listing, path, linesOf(text), match)) cut = true;
  }
  return listing.text(
    "No matches.",
    "matches",
    "narrow the pattern, or name a folder or file in path",
    notes(files, searched, skipped, cut),
  );
}

/** Answers whether a line was cut. */
async function addMatches(listing: Listing, path: string, lines: readonly string[], match: Matcher): Promise<boolean> {
  let cut = false;
  for (const i of await match(lines)) {
    const line = lines[i]?.replace(/\r$/, "") ?? "";
    const bounded = boundLine(line, limits.toolMatchBytesMax);
    cut ||= Buffer.byteLength(line) > limits.toolMatchBytesMax;
    listing.add(`${shownPath(path)}:${i + 1}: ${bounded}`);
  }
  return cut;
}

/** `null` for a file that is too large, or was removed or replaced meanwhile. */
async function readOrSkip(memory: ToolMemory, path: string): Promise<Uint8Array | null> {
  try {
    return await memory.files.read(path);
  } catch (error) {
    if (isHeadfastError(error, "invalid_input")) return null;
    throw error;
  }
}

function notes(files: Files, searched: number, skipped: number, cut: boolean): string[] {
  const left = files.paths.length - searched;
  return [
    ...(cut
      ? [`[lines that end with … are cut at ${limits.toolMatchBytesMax} bytes: read gives a line whole, with its number as offset]`]
      : []),
    ...(skipped > 0 ? [`[${skipped} files were not searched: no text, or larger than ${limits.toolFileBytesMax} bytes]`] : []),
    ...(left > 0 || files.more ? [`[${files.more ? "more than " : ""}${left} files were not reached; name a folder in path]`] : []),
  ];
}
