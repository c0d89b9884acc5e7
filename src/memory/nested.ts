/** Repositories inside a Memory Repository that have no commit yet: git refuses to add them, so they are set aside by name. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { pathBytes, pathText } from "../domain/memory-path.ts";
import { ignoredCommand, openCommand } from "./git-commands.ts";
import { type GitPlace, runGit, runTextGit } from "./runner.ts";

/** Paths of the repositories inside that are unborn and not ignored, by walking the tree: only done when git has refused. */
export async function unbornRepositories(root: string, place: GitPlace): Promise<string[]> {
  const unborn: string[] = [];
  for await (const path of repositoriesBelow(root, "")) if (await isUnborn(root, path, place)) unborn.push(path);
  if (unborn.length === 0) return [];
  const ignored = await runGit(
    place,
    ignoredCommand,
    Buffer.concat(unborn.map((path) => Buffer.concat([Buffer.from("./"), pathBytes(path), Buffer.of(0)]))),
  );
  return unborn.filter((path) => !ignored.includes(path));
}

async function* repositoriesBelow(root: string, folder: string): AsyncGenerator<string> {
  const here = folder === "" ? Buffer.from(root) : Buffer.concat([Buffer.from(`${root}/`), pathBytes(folder)]);
  const entries = await readdir(here, { withFileTypes: true, encoding: "buffer" }).catch(() => []); // Git's own error is the one to tell.
  if (folder !== "" && entries.some((entry) => entry.name.toString() === ".git")) return yield folder;
  for (const entry of entries) {
    const name = pathText(entry.name);
    if (entry.isDirectory() && name !== ".git") yield* repositoriesBelow(root, folder === "" ? name : `${folder}/${name}`);
  }
}

/** Git opens it, and its HEAD has no commit. What git does not open is plain files to `git add` too, or its error stands. */
async function isUnborn(root: string, path: string, { home, system }: GitPlace): Promise<boolean> {
  const inside = join(root, pathBytes(path).toString());
  try {
    return (await runTextGit({ root: inside, home, system }, openCommand)).head === null;
  } catch {
    return false;
  }
}

/** Rules that leave out exactly these folders. */
export function excludePatterns(paths: readonly string[]): Buffer {
  const lines = paths.map((path) =>
    Buffer.from(
      `/${pathBytes(path)
        .toString("latin1")
        .replace(/[\\*?[\]!# ]/gu, "\\$&")}/\n`,
      "latin1",
    ),
  );
  return Buffer.concat(lines);
}
