/** What the file system says of a Memory Repository before git is asked. */
import type { PathLike, Stats } from "node:fs";
import { lstat, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import { HeadfastError } from "../domain/errors.ts";

export type Folder = { state: "folder"; root: string } | { state: "not_ready"; reason: string };

/** The folder's real path where it holds a `.git`; what is not there yet is not ready, what cannot be told is an error. */
export async function openFolder(path: string): Promise<Folder> {
  try {
    const found = await stat(path);
    if (!found.isDirectory()) return { state: "not_ready", reason: `${path} is not a folder` };
    const root = await realpath(path);
    if (await exists(join(root, ".git"))) return { state: "folder", root };
    return {
      state: "not_ready",
      reason: (await isBare(root))
        ? `${path} is a bare repository: it has no working tree`
        : `${path} is not the top folder of a git repository`,
    };
  } catch (error) {
    if (codeOf(error) === "ENOENT") return { state: "not_ready", reason: `${path} does not exist` };
    throw unreadableFile(path, error);
  }
}

async function isBare(root: string): Promise<boolean> {
  const parts = await Promise.all(["HEAD", "objects", "refs"].map((part) => exists(join(root, part))));
  return parts.every(Boolean);
}

/** Whether something has that name; a failure to look is not "no". */
export async function exists(path: string): Promise<boolean> {
  return (await lstatOrNull(path)) !== null;
}

/** `null` where the name is surely free. */
export async function lstatOrNull(path: PathLike): Promise<Stats | null> {
  try {
    return await lstat(path);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return null;
    throw error;
  }
}

/** A file system's error by its code, as ours. */
export function unreadableFile(path: string, error: unknown): HeadfastError {
  if (error instanceof HeadfastError) return error;
  return new HeadfastError("memory_unreadable", `${path} cannot be read: ${(error as Error).message}`, {
    data: { path, errno: codeOf(error) },
    cause: error,
  });
}

export function codeOf(error: unknown): string {
  return String((error as NodeJS.ErrnoException | undefined)?.code);
}
