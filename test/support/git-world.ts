/** A git repository of one test, with what a person does to it, and the real adapter over it. */
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { gitRepository } from "../../src/memory/repository.ts";
import { realSystem } from "../../src/system.ts";
import type { MemoryWorld } from "../conformance/memory-suite.ts";
import { git, temporaryFolder } from "./git.ts";

export interface GitWorld extends MemoryWorld {
  /** The repository's folder. */
  path: string;
  /** The worker's caches. */
  stateFolder: string;
  /** Another worker's view of it: shares only the caches. */
  another(stateFolder?: string): MemoryWorld["repository"];
  git(...args: string[]): string;
  file(path: string): string;
}

/** On the unborn branch `main`, empty. */
export function gitWorld(init: readonly string[] = []): GitWorld {
  const folder = temporaryFolder("memory");
  const path = join(folder.path, "repository");
  const stateFolder = join(folder.path, "state");
  mkdirSync(path);
  git(path, "init", "-q", "-b", "main", ...init);
  const another = (state = stateFolder) => gitRepository({ path, stateFolder: state, system: realSystem });
  const file = (name: string): string => join(path, name);
  const edit: MemoryWorld["edit"] = (name, text) => {
    mkdirSync(dirname(file(name)), { recursive: true });
    writeFileSync(file(name), text);
  };
  const head = join(path, ".git", "HEAD");
  const parked = join(folder.path, "parked.git");
  let headText = "";
  return {
    repository: another(),
    path,
    stateFolder,
    another,
    file,
    edit,
    git: (...args) => git(path, ...args),
    remove: (name) => rmSync(file(name)),
    rename(from, to) {
      mkdirSync(dirname(file(to)), { recursive: true });
      renameSync(file(from), file(to));
    },
    chmod: (name, executable) => chmodSync(file(name), executable ? 0o755 : 0o644),
    switchTo(branch) {
      if (branch === null) return void git(path, "checkout", "-q", "--detach");
      git(path, "update-ref", `refs/heads/${branch}`, git(path, "rev-parse", "HEAD").trim());
      git(path, "symbolic-ref", "HEAD", `refs/heads/${branch}`);
    },
    commit(message) {
      git(path, "add", "-A");
      git(path, "commit", "-q", "--allow-empty", "-m", message);
    },
    breakIt() {
      headText = readFileSync(head, "utf8");
      writeFileSync(head, "nonsense\n");
    },
    repair: () => writeFileSync(head, headText),
    unready: () => renameSync(join(path, ".git"), parked),
    ready() {
      if (existsSync(parked)) renameSync(parked, join(path, ".git"));
    },
    dispose: folder.remove,
  };
}
