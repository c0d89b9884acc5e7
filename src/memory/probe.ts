/**
 * What the repository itself says, before its working tree is walked: that git takes it, where HEAD is, which of its settings
 * change what `git add` makes of a file. These commands read the repository's configuration and run nothing of it.
 */
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import { HeadfastError } from "../domain/errors.ts";
import { limits } from "../domain/limits.ts";
import { codeOf } from "./folder.ts";
import { branchCommand, headCommand, openCommand, settingsCommand } from "./git-commands.ts";
import { readBounded } from "./jail.ts";
import { runGit, runTextGit, type GitPlace } from "./runner.ts";

/** All that the scan of a working tree depends on, besides the tree. */
export interface Terms {
  objectFormat: string;
  settings: readonly string[];
  exclude: Buffer;
  attributes: Buffer;
}

export interface Where {
  /** Short name; `null` when detached. */
  branch: string | null;
  /** `null` when unborn. */
  head: string | null;
}

/** @throws {HeadfastError} `memory_unreadable` where git refuses the folder, or its configuration calls it bare. */
export async function probeTerms(place: GitPlace): Promise<Terms> {
  const [opened, settings] = await Promise.all([runTextGit(place, openCommand), runTextGit(place, settingsCommand)]);
  if (opened.bare) throw new HeadfastError("memory_unreadable", `${place.root} has a working tree, but its configuration calls it bare (core.bare)`, { data: { command: "git rev-parse", exitCode: 0 } });
  const [exclude, excludesFile, attributes] = await Promise.all([
    readRules(join(opened.commonDir, "info", "exclude")),
    readRules(excludesPath(place.root, settings.excludesFile)),
    readRules(join(opened.commonDir, "info", "attributes")),
  ]);
  // Later rules win: the configured file is the weaker one.
  return { objectFormat: opened.objectFormat, settings: settings.values, exclude: Buffer.concat([excludesFile, Buffer.from("\n"), exclude]), attributes };
}

/** A path below a home folder is nobody's here. */
function excludesPath(root: string, configured: string | null): string | null {
  if (configured === null || configured === "" || configured.startsWith("~")) return null;
  return isAbsolute(configured) ? configured : join(root, configured);
}

/** Patterns; nothing where there is no such file. Never waits for a pipe. */
async function readRules(path: string | null): Promise<Buffer> {
  if (path === null) return Buffer.alloc(0);
  try {
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      if (!(await file.stat()).isFile()) return Buffer.alloc(0);
      return await readBounded(file, limits.toolFileBytesMax, () => new Error(`it is larger than ${limits.toolFileBytesMax} bytes`));
    } finally {
      await file.close();
    }
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(codeOf(error))) return Buffer.alloc(0);
    throw new HeadfastError("memory_unreadable", `${path} cannot be read: ${(error as Error).message}`, { data: { path }, cause: error });
  }
}

const headTriesMax = 3;

/** Branch and commit of one moment: read again where somebody switched in between. */
export async function probeHead(place: GitPlace): Promise<Where> {
  for (let tries = 1; ; tries += 1) {
    const [branch, head] = await Promise.all([runGit(place, branchCommand), runGit(place, headCommand)]);
    const same = head !== null && head.name === (branch ?? "HEAD");
    // An unborn branch is answered with nothing, or, where a branch is called HEAD, with that one.
    if (same || head === null || tries === headTriesMax) return { branch: branch === null ? null : shortName(branch), head: same ? head.commit : null };
  }
}

function shortName(branch: string): string {
  return branch.startsWith("refs/heads/") ? branch.slice("refs/heads/".length) : branch;
}
