/**
 * What the repository itself says, before its working tree is walked: that git takes it, where HEAD is, which of its settings
 * change what `git add` makes of a file. These commands read the repository's configuration and run nothing of it.
 */
import { constants } from "node:fs";
import { open, stat } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import { HeadfastError } from "../domain/errors.ts";
import { limits } from "../domain/limits.ts";
import { codeOf } from "./folder.ts";
import { branchCommand, type Head, type Opened, openCommand, type Settings, settingsCommand } from "./git-commands.ts";
import { readBounded } from "./jail.ts";
import { type GitPlace, runGit, runTextGit } from "./runner.ts";

/** All that the scan of a working tree depends on, besides the tree. */
export interface Terms {
  objectFormat: string;
  commonDir: string;
  settings: Settings;
  /** Tells one writing of the configuration from another; `null`: it must be asked for each time. */
  settingsStamp: string | null;
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
export async function openWorkTree(place: GitPlace): Promise<Opened> {
  const opened = await runTextGit(place, openCommand);
  if (!opened.bare) return opened;
  throw new HeadfastError("memory_unreadable", `${place.root} has a working tree, but its configuration calls it bare (core.bare)`, {
    data: { command: "git rev-parse", exitCode: 0 },
  });
}

/** Terms and HEAD now. What is known of the last time saves a process where the configuration was not written since. */
export async function probe(place: GitPlace, known?: Terms): Promise<{ terms: Terms; where: Where }> {
  const [opened, kept] = await Promise.all([openWorkTree(place), settingsOf(place, known)]);
  const { objectFormat, commonDir } = opened;
  const { settings, settingsStamp } = known === undefined || known.commonDir === commonDir ? kept : await settingsOf(place);
  const [exclude, excludesFile, attributes, where] = await Promise.all([
    readRules(join(commonDir, "info", "exclude")),
    readRules(excludesPath(place.root, settings.excludesFile)),
    readRules(join(commonDir, "info", "attributes")),
    whereOf(place, opened.head),
  ]);
  // Later rules win: the configured file is the weaker one.
  return {
    terms: {
      objectFormat,
      commonDir,
      settings,
      settingsStamp,
      exclude: Buffer.concat([excludesFile, Buffer.from("\n"), exclude]),
      attributes,
    },
    where,
  };
}

async function settingsOf(place: GitPlace, known?: Terms): Promise<Pick<Terms, "settings" | "settingsStamp">> {
  const file = known === undefined ? null : join(known.commonDir, "config");
  // Stamped before it is read: a later writing then shows.
  const stamp = file === null ? null : await stampOf(file);
  if (known !== undefined && known.settingsStamp !== null && stamp === known.settingsStamp) return known;
  const settings = await runTextGit(place, settingsCommand);
  return { settings, settingsStamp: settings.oneFile ? stamp : null };
}

async function stampOf(path: string): Promise<string> {
  const { ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
  return `${ino}:${size}:${mtimeNs}:${ctimeNs}`;
}

/** One more question where the answer is not certain: unborn, a branch called HEAD, a name that is not UTF-8. */
async function whereOf(place: GitPlace, head: Head | null): Promise<Where> {
  const unclear = head?.name.includes("\uFFFD") === true;
  if (head !== null && !unclear && head.name !== "refs/heads/HEAD")
    return { branch: head.name === "HEAD" ? null : shortName(head.name), head: head.commit };
  const branch = await runGit(place, branchCommand);
  const same = head !== null && (unclear || head.name === (branch ?? "HEAD"));
  return { branch: branch === null ? null : shortName(branch), head: same ? head.commit : null };
}

function shortName(branch: string): string {
  return branch.startsWith("refs/heads/") ? branch.slice("refs/heads/".length) : branch;
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
