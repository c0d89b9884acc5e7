/** The ordinary file tools with which a bot explores and changes its Memory Repository, shown to it as /memory. */
import type { Tool } from "../domain/ports.ts";
import { editTool } from "./edit.ts";
import { globTool } from "./glob.ts";
import { grepTool } from "./grep.ts";
import { readTool } from "./read.ts";
import { writeTool } from "./write.ts";

/** read, grep, glob, write and edit. They see the memory of the call's context and nothing else. */
export function fileTools(): Tool[] {
  return [readTool, grepTool, globTool, writeTool, editTool];
}
