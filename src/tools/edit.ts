import { z } from "zod";
import { limits } from "../domain/limits.ts";
import { memoryPath } from "../domain/memory-path.ts";
import type { Tool } from "../domain/ports.ts";
import { defineTool } from "./define-tool.ts";
import { memoryOf, shownPath, textOf, toolFailed } from "./memory-text.ts";
import { contentBytes } from "./write.ts";

/** `edit`: an exact text in a file gives way to another. */
export const editTool: Tool = defineTool({
  name: "edit",
  description:
    "Replaces a text in a file of the memory under /memory. old_text must stand in the file exactly once, to the character, unless replace_all is true.",
  input: z.object({
    path: z.string().describe("The file, such as /memory/notes.md"),
    old_text: z.string().min(1),
    new_text: z.string(),
    replace_all: z.boolean().optional(),
  }),
  async run({ path, old_text: oldText, new_text: newText, replace_all: all = false }, context) {
    const memory = memoryOf(context);
    const clean = memoryPath(path);
    // Rule 10: after a crash the file may hold this very edit already.
    if (await memory.resumed?.(clean)) return `Edited ${shownPath(clean)}.`;
    const text = textOf(await memory.files.read(clean));
    if (text === null) throw toolFailed(`${shownPath(clean)} is not text`);
    if (oldText === newText) throw toolFailed("old_text and new_text are the same");
    await memory.write(clean, contentBytes(replaced(text, oldText, newText, all)));
    return `Edited ${shownPath(clean)}.`;
  },
});

function replaced(text: string, oldText: string, newText: string, all: boolean): string {
  const count = countOf(text, oldText);
  if (count === 0) throw toolFailed(`old_text was not found${lineEndHint(text, oldText)}; read the file again`);
  if (count > 1 && !all) throw toolFailed(`old_text stands there ${count} times; add more of the text around it, or set replace_all`);
  const bytes = Buffer.byteLength(text) + count * (Buffer.byteLength(newText) - Buffer.byteLength(oldText));
  if (bytes > limits.toolFileBytesMax) throw toolFailed(`the file would have ${bytes} bytes, the limit is ${limits.toolFileBytesMax}`);
  return text.split(oldText).join(newText);
}

function countOf(text: string, part: string): number {
  let count = 0;
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + part.length)) count += 1;
  return count;
}

function lineEndHint(text: string, oldText: string): string {
  return text.includes("\r\n") && oldText.includes("\n") && !oldText.includes("\r\n") ? " (the file's lines end with \\r\\n)" : "";
}
