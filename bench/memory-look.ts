/** What an unchanged look at a Memory Repository costs, side by side with `git status` in one run. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gitRepository } from "../src/memory/repository.ts";
import { realSystem } from "../src/system.ts";

const env = { PATH: process.env.PATH, HOME: "/nonexistent", GIT_CONFIG_NOSYSTEM: "1", GIT_OPTIONAL_LOCKS: "1" };
const who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"];

function fill(path: string, files: number): void {
  for (let index = 0; index < files; index += 1) {
    const folder = join(path, `folder-${index % 100}`);
    if (index < 100) mkdirSync(folder);
    writeFileSync(join(folder, `note-${index}.md`), `note ${index}\n`);
  }
}

async function timed(run: () => unknown): Promise<number> {
  const start = performance.now();
  await run();
  return performance.now() - start;
}

function median(values: number[]): number {
  return values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

export interface LookCost {
  files: number;
  rounds: number;
  gitStatusMs: number;
  unchangedLookMs: number;
  /** Of the medians: a look's to `git status`'s. */
  ratio: number;
  oneFileChangedMs: number;
  firstLookMs: number;
}

export async function lookBench(files: number, rounds: number): Promise<LookCost> {
  const root = mkdtempSync(join(tmpdir(), "headfast-bench-"));
  try {
    const path = join(root, "repository");
    mkdirSync(path);
    const git = (...args: string[]): void => void execFileSync("git", args, { cwd: path, env, stdio: "ignore" });
    fill(path, files);
    git("init", "-q");
    git("add", "-A");
    git(...who, "commit", "-q", "-m", "first");
    const repository = gitRepository({ path, stateFolder: join(root, "state"), system: realSystem });
    const first = await timed(() => repository.look());
    const times = { status: [] as number[], look: [] as number[], changed: [] as number[] };
    // Git reads what was written in the second of its index once more: both are measured after it.
    await realSystem.sleep(1_100);
    await repository.look();
    git("status");
    for (let round = 0; round < rounds; round += 1) {
      times.status.push(await timed(() => git("status", "--porcelain=v2", "--branch", "-z")));
      times.look.push(await timed(() => repository.look()));
    }
    for (let round = 0; round < rounds; round += 1) {
      writeFileSync(join(path, "folder-1/note-1.md"), `round ${round}\n`);
      times.changed.push(await timed(() => repository.look()));
    }
    const [status, look, changed] = [median(times.status), median(times.look), median(times.changed)];
    return {
      files,
      rounds,
      gitStatusMs: status,
      unchangedLookMs: look,
      ratio: look / status,
      oneFileChangedMs: changed,
      firstLookMs: first,
    };
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}
