/**
 * The worker's own folder for a Memory Repository. It holds a git folder of our own, so that the commands that walk the
 * working tree never read the repository's configuration or hooks, and an index that is kept between looks. All of it is a
 * cache: it may be removed at any time.
 */
import { createHash } from "node:crypto";
import { link, lstat, mkdir, readdir, readFile, rename, rm, unlink, writeFile } from "node:fs/promises";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { HeadfastError } from "../domain/errors.ts";
import { limits } from "../domain/limits.ts";
import type { System } from "../domain/ports.ts";
import { codeOf, exists } from "./folder.ts";

export interface StateFolder {
  path: string;
  /** An empty folder for git's HOME. */
  home: string;
}

/** Where the caches lie unless the caller says otherwise. */
export function defaultStateFolder(): string {
  return join(tmpdir(), `headfast-${userInfo().uid}`);
}

/** Makes the folder of one repository. @throws {HeadfastError} `configuration` where it would lie inside it, or is not ours. */
export async function openStateFolder(parent: string, root: string): Promise<StateFolder> {
  if (`${parent}/`.startsWith(`${root}/`))
    throw new HeadfastError("configuration", `the state folder ${parent} lies inside the Memory Repository ${root}`);
  await mkdir(parent, { recursive: true, mode: 0o700 });
  await checkOwner(parent);
  const path = join(parent, createHash("sha256").update(root).digest("hex").slice(0, 32));
  const home = join(path, "home");
  await mkdir(home, { recursive: true, mode: 0o700 });
  return { path, home };
}

/** In a shared temporary folder anybody may have made it first; git would then take settings from a stranger. */
async function checkOwner(path: string): Promise<void> {
  const found = await lstat(path);
  if (!found.isDirectory() || found.uid !== userInfo().uid || (found.mode & 0o022) !== 0) {
    throw new HeadfastError("configuration", `the state folder ${path} must be a folder that this user owns and nobody else can write to`);
  }
}

/** A git folder of our own: no hooks, no settings but the format; `info/` holds what the repository says of ignored files and attributes. */
export async function ownGitDir(
  state: StateFolder,
  terms: { objectFormat: string; exclude: Buffer; attributes: Buffer },
  id: string,
): Promise<string> {
  const { objectFormat } = terms;
  const gitDir = join(state.path, `git-${objectFormat}`);
  await Promise.all(["objects", "refs", "info"].map((name) => mkdir(join(gitDir, name), { recursive: true })));
  const format = objectFormat === "sha1" ? "" : `[extensions]\n\tobjectFormat = ${objectFormat}\n`;
  const files: [string, Buffer][] = [
    ["HEAD", Buffer.from("ref: refs/heads/none\n")],
    ["config", Buffer.from(`[core]\n\trepositoryFormatVersion = ${format === "" ? 0 : 1}\n\tbare = false\n${format}`)],
    // `.GIT` and the like: git refuses to add them, and one such folder would end every look.
    ["info/exclude", Buffer.concat([terms.exclude, Buffer.from("\n.[gG][iI][tT]\n")])],
    ["info/attributes", terms.attributes],
  ];
  await Promise.all(files.map(([name, bytes]) => keepFile(join(gitDir, name), bytes, id)));
  return gitDir;
}

/** Replaced whole, and only where it differs: another process may read it at the same time. */
async function keepFile(path: string, bytes: Buffer, id: string): Promise<void> {
  const standing = await readFile(path).catch((error) => {
    if (codeOf(error) === "ENOENT") return null;
    throw error;
  });
  if (standing?.equals(bytes)) return;
  const half = `${path}.${id}`;
  await writeFile(half, bytes);
  await rename(half, path);
}

/** A look's own folder: a private index and scratch objects. Nothing is locked, so a killed look blocks nobody. */
export interface LookFolder {
  path: string;
  index: string;
  objects: string;
}

export async function openLookFolder(state: StateFolder, id: string): Promise<LookFolder> {
  const path = join(state.path, `look-${id}`);
  const look = { path, index: join(path, "index"), objects: join(path, "objects") };
  await mkdir(look.objects, { recursive: true, mode: 0o700 });
  return look;
}

export async function removeLookFolder(look: LookFolder): Promise<void> {
  await rm(look.path, { recursive: true, force: true });
}

/** The newest kept index of that kind, `null` where there is none. A kind is what its entries' blob ids depend on. */
export async function keptIndex(state: StateFolder, kind: string): Promise<string | null> {
  const names = (await readdir(state.path)).filter((name) => name.startsWith(`index-${kind}-`));
  return names.sort()[0] ?? null;
}

/** The kept index under another name: a link keeps its time stamps, by which git knows what it must read again. */
export async function borrowIndex(state: StateFolder, name: string, look: LookFolder): Promise<boolean> {
  try {
    await link(join(state.path, name), look.index);
    return true;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return false; // Another process replaced it.
    throw error;
  }
}

/** Keeps the look's index under that name, in place of every other. */
export async function keepIndex(state: StateFolder, name: string, look: LookFolder): Promise<void> {
  if (!(await exists(look.index))) return;
  await rename(look.index, join(state.path, name));
  const others = (await readdir(state.path)).filter((other) => other.startsWith("index-") && other !== name);
  await Promise.all(others.map((other) => unlink(join(state.path, other)).catch(ignoreMissing)));
}

function ignoreMissing(error: unknown): void {
  if (codeOf(error) !== "ENOENT") throw error;
}

/** What looks of killed processes left behind. */
export async function removeLeftovers(state: StateFolder, system: System): Promise<void> {
  const names = (await readdir(state.path)).filter((name) => name.startsWith("look-"));
  for (const name of names) {
    const path = join(state.path, name);
    const found = await lstat(path).catch(() => null); // Its own look was faster.
    if (found !== null && system.now() - found.mtimeMs > limits.leftoverMs) await rm(path, { recursive: true, force: true });
  }
}
