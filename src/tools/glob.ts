import picomatch from "picomatch";
import { z } from "zod";
import { limits } from "../domain/limits.ts";
import { memoryRoot } from "../domain/memory-path.ts";
import type { Tool } from "../domain/ports.ts";
import { Listing } from "./bounded.ts";
import { defineTool } from "./define-tool.ts";
import { memoryOf, shownPath, toolFailed } from "./memory-text.ts";
import { RegexThread } from "./regex-thread.ts";

/** `glob`: the paths of files, by pattern. */
export const globTool: Tool = defineTool({
  name: "glob",
  description:
    "Lists the files of the memory under /memory whose path matches a glob pattern. A pattern without a slash matches file names in every folder.",
  input: z.object({ pattern: z.string().min(1).describe("Such as **, *.md, people/**/*.md or {a,b}.txt") }),
  async run({ pattern }, context) {
    const { paths, more } = await memoryOf(context).files.list("", limits.manifestPathsMax);
    const thread = new RegexThread(regexOf(pattern), "s"); // a name may hold a line end
    try {
      const listing = new Listing();
      for (const i of await thread.match(paths, context.signal)) listing.add(shownPath(paths[i] ?? ""));
      return listing.text(
        "No files match.",
        "files",
        "name a folder in the pattern",
        more ? [`[only the first ${paths.length} files of the memory were looked at]`] : [],
      );
    } finally {
      await thread.close();
    }
  },
});

function regexOf(pattern: string): string {
  if (Buffer.byteLength(pattern) > limits.toolPatternBytesMax)
    throw toolFailed(`the pattern is longer than ${limits.toolPatternBytesMax} bytes`);
  const below =
    pattern === memoryRoot || pattern.startsWith(`${memoryRoot}/`) ? pattern.slice(memoryRoot.length + 1) : pattern.replace(/^\.\//, "");
  const anywhere = below === pattern && !below.includes("/") ? `**/${below}` : below;
  try {
    return picomatch.makeRe(anywhere === "" ? "**" : anywhere, { dot: true, nonegate: true, windows: false }).source;
  } catch (error) {
    throw toolFailed(`the pattern is no glob: ${(error as Error).message}`);
  }
}
