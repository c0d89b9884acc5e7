import { z } from "zod";
import { limits } from "../domain/limits.ts";
import { memoryPath } from "../domain/memory-path.ts";
import type { Tool } from "../domain/ports.ts";
import { defineTool } from "./define-tool.ts";
import { memoryOf, shownPath, toolFailed } from "./memory-text.ts";

/** `write`: a whole file. */
export const writeTool: Tool = defineTool({
  name: "write",
  description: "Writes a text file of the memory under /memory, in place of what it held; makes folders as needed.",
  input: z.object({ path: z.string().describe("The file, such as /memory/notes.md"), content: z.string().describe("The whole new text") }),
  async run({ path, content }, context) {
    const clean = memoryPath(path);
    const bytes = contentBytes(content);
    await memoryOf(context).write(clean, bytes);
    return `Wrote ${shownPath(clean)} (${bytes.length} bytes).`;
  },
});

/** The bytes of a file's text. @throws {HeadfastError} `tool_failed` above `limits.toolFileBytesMax`. */
export function contentBytes(content: string): Buffer {
  const bytes = Buffer.from(content.toWellFormed());
  if (bytes.length > limits.toolFileBytesMax)
    throw toolFailed(`the file would have ${bytes.length} bytes, the limit is ${limits.toolFileBytesMax}`);
  return bytes;
}
