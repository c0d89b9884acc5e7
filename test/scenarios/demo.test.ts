/** The demo as a program: played whole on a clone of somebody's repository, and ended in the middle in every way. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import { MongoClient } from "mongodb";
import { mongoUrl, redisUrl } from "../support/services.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("demo", { timeoutMs: 60_000 });
const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const running = new Set<ChildProcess>();

test.after.each(() => {
  for (const child of running) child.kill("SIGKILL");
});

interface Run {
  child: ChildProcess;
  /** Resolves with the exit code or the signal. */
  ended: Promise<number | NodeJS.Signals>;
  out: string[];
  err: string[];
  /** The match of the first line, of either stream, that fits. */
  line(pattern: RegExp): Promise<RegExpMatchArray>;
}

function demo(...args: string[]): Run {
  const child = spawn(process.execPath, ["--import", "tsx", "demo/run.ts", ...args], { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
  running.add(child);
  const [out, err]: [string[], string[]] = [[], []];
  const waiting: { pattern: RegExp; found(match: RegExpMatchArray): void }[] = [];
  const read = (lines: string[], line: string): void => {
    lines.push(line);
    for (const { pattern, found } of waiting) {
      const match = pattern.exec(line);
      if (match) found(match);
    }
  };
  if (child.stdout) createInterface({ input: child.stdout }).on("line", (line) => read(out, line));
  if (child.stderr) createInterface({ input: child.stderr }).on("line", (line) => read(err, line));
  const ended = once(child, "close").then(([code, signal]) => {
    running.delete(child);
    return (code ?? signal) as number | NodeJS.Signals;
  });
  return { child, ended, out, err, line: (pattern) => new Promise((found) => void waiting.push({ pattern, found })) };
}

interface Up extends Run {
  pids: number[];
  folder: string;
}

/** A demo that has just begun to play. */
async function upAndPlaying(): Promise<Up> {
  const run = demo();
  const workers = run.line(/workers one \(pid (\d+)\) and two \(pid (\d+)\) take work/);
  const records = run.line(/written down in (.*)$/);
  const [, one, two] = await workers;
  const [, folder = ""] = await records;
  return { ...run, pids: [Number(one), Number(two)], folder: dirname(folder) };
}

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function leavesNothing({ pids, folder }: Up): Promise<void> {
  while (pids.some(alive) || existsSync(folder)) await new Promise((resolve) => setTimeout(resolve, 20));
}

/** Paths, times and contents of everything below a folder. */
function everythingIn(folder: string): string {
  const paths = readdirSync(folder, { recursive: true, encoding: "utf8" }).sort();
  const describe = (path: string): string => {
    const found = statSync(join(folder, path));
    return `${path} ${found.mtimeMs} ${found.ino} ${found.isFile() ? readFileSync(join(folder, path), "base64") : ""}`;
  };
  return paths.map(describe).join("\n");
}

async function traces(): Promise<string[]> {
  const redis = new Redis(redisUrl());
  const mongo = await new MongoClient(mongoUrl()).connect();
  try {
    const keys = await redis.keys("*demo-*");
    const { databases } = await mongo.db("admin").admin().listDatabases({ nameOnly: true });
    return [...keys, ...databases.map(({ name }) => name).filter((name) => name.startsWith("demo-"))];
  } finally {
    redis.disconnect();
    await mongo.close();
  }
}

const keys =
  "turns sessions distinct_prefixes_per_session prefixes notices dead_letters replays cached_tokens fresh_tokens cost_usd violations acts seconds";

/** The whole play takes a minute and is a check of its own, `npm run demo`: here it is in the long form. */
if (process.env.HEADFAST_LONG === "1") {
  test(
    "played whole on a clone: every claim holds, the repository is not touched, servers that were found keep nothing",
    async () => {
      const own = mkdtempSync(join(tmpdir(), "headfast-demo-test-"));
      try {
        execFileSync("git", ["init", "--quiet"], { cwd: own });
        writeFileSync(join(own, "README.md"), "A repository without a persona.\n");
        execFileSync("git", ["add", "."], { cwd: own });
        execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "--quiet", "-m", "one"], { cwd: own });
        const before = everythingIn(own);
        const { ended, out, err } = demo("--json", "--memory", own);
        assert.is(await ended, 0, err.join("\n"));
        const summary = JSON.parse(out.at(-1) ?? "");
        assert.equal(Object.keys(summary), keys.split(" "));
        assert.is(out.length, 1);
        assert.equal(summary.acts, { a: true, b: true, c: true, d: true, e: true, f: true, g: true, end: true });
        assert.equal([summary.violations, summary.distinct_prefixes_per_session, summary.dead_letters, summary.replays], [0, 1, 1, 1]);
        assert.ok(summary.cached_tokens.headfast > summary.cached_tokens.naive && summary.cost_usd.headfast < summary.cost_usd.naive);
        assert.ok(err.some((line) => line.includes("which has no PERSONA.md")));
        assert.not.ok(err.some((line) => line.includes("✗")));
        assert.is(everythingIn(own), before);
        assert.equal(await traces(), []);
      } finally {
        rmSync(own, { recursive: true, force: true });
      }
    },
    { timeoutMs: 110_000 },
  );
}

test("killed outright: its workers and its folder are gone", async () => {
  const up = await upAndPlaying();
  up.child.kill("SIGKILL");
  assert.is(await up.ended, "SIGKILL");
  await leavesNothing(up);
});

test("Ctrl-C: ends with 130 and leaves nothing", async () => {
  const up = await upAndPlaying();
  up.child.kill("SIGINT");
  assert.is(await up.ended, 130);
  assert.equal(up.pids.filter(alive), []);
  assert.not.ok(existsSync(up.folder));
});

test("a worker that breaks: ends with 1, says which one, leaves nothing", async () => {
  const up = await upAndPlaying();
  process.kill(up.pids[1] ?? 0, "SIGKILL");
  assert.is(await up.ended, 1);
  assert.match(up.err.join("\n"), "worker two ended with SIGKILL, and nobody had asked it to");
  assert.equal(up.pids.filter(alive), []);
  assert.not.ok(existsSync(up.folder));
});

test("help, unknown options and folders that are no repository", async () => {
  const [help, unknown, folder] = [demo("--help"), demo("--fast"), demo("--memory", join(root, "no-such-folder"))];
  assert.is(await help.ended, 0);
  assert.match(help.out.join("\n"), "npm run demo -- --memory DIR");
  assert.is(await unknown.ended, 2);
  assert.match(unknown.err.join("\n"), "--fast");
  assert.is(await folder.ended, 1);
  assert.match(folder.err.join("\n"), "there is no such folder");
});

test.run();
