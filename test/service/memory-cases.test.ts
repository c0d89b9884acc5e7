/**
 * Cases from other projects' trackers, on git: renames, states of a branch, rebases, refusals, nested repositories and what
 * hides a change. The long form of the loops runs with HEADFAST_LONG set.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { netChange, renderNotice } from "../../src/domain/net-change.ts";
import type { MemoryState } from "../../src/domain/records.ts";
import { gitRepository } from "../../src/memory/repository.ts";
import { realSystem } from "../../src/system.ts";
import { codeOf, seen, told } from "../conformance/memory-suite.ts";
import { git, personEnv, temporaryFolder } from "../support/git.ts";
import { type GitWorld, gitWorld } from "../support/git-world.ts";
import { assert, suite } from "../support/suite.ts";

const long = process.env["HEADFAST_LONG"] !== undefined;
const test = suite("memory cases", { timeoutMs: long ? 600_000 : 120_000 });

async function withWorld(run: (world: GitWorld) => Promise<void>, init: readonly string[] = []): Promise<void> {
  const world = gitWorld(init);
  try {
    await run(world);
  } finally {
    world.dispose();
  }
}

/** What a session hears that looks again and again. */
function listener(world: GitWorld): () => Promise<string[]> {
  let last: MemoryState | undefined;
  return async () => {
    const now = await seen(world.repository);
    const change = last === undefined ? null : netChange(last, [], now);
    last = now;
    return told(change);
  };
}

test("A12: the persona's bytes on disk are the persona's bytes", () =>
  withWorld(async (world) => {
    const body = "\n\nYou are e\u0301da.\r\n\t\u00A0👩\u200D💻  \n\n\n";
    for (const file of [body, `\uFEFF${body}`, `---\r\npin: 1\r\n---\r\n${body}`]) {
      world.edit("PERSONA.md", file);
      assert.equal(await world.repository.persona(), { state: "ready", body });
    }
    world.edit("PERSONA.md", "---\npin: [\n---\nAda");
    const warnings = ["the front matter is not valid YAML; it is left out all the same"];
    assert.equal(await world.repository.persona(), { state: "ready", body: "Ada", warnings });
  }));

for (const settings of [[], ["status.renames=false"], ["diff.renames=copies"], ["status.relativePaths=true"], ["core.quotePath=true"]]) {
  test(`D1: exact pairs from and to, whatever is configured: ${settings[0] ?? "nothing"}`, () =>
    withWorld(async (world) => {
      for (const setting of settings) world.git("config", ...(setting.split("=") as [string, string]));
      for (const name of ["M foo.md", "edit.md", "copy.md", "dir/deep.md", "x.md", "y.md", "stays.md"])
        world.edit(name, `text of ${name}\n`);
      world.commit("first");
      const hear = listener(world);
      await hear();
      world.git("mv", "stays.md", "away.md");
      assert.equal(await hear(), ["renamed away.md < stays.md"]);
      world.git("mv", "away.md", "stays.md");
      assert.equal(await hear(), ["renamed stays.md < away.md"]);
      const before = await seen(world.repository);
      world.git("mv", "stays.md", "away.md");
      world.git("mv", "away.md", "stays.md");
      world.rename("M foo.md", "R  bar.md");
      world.rename("edit.md", "edited.md");
      world.edit("edited.md", "text of edit.md\nand more\n");
      world.edit("copied.md", "text of copy.md\n");
      world.rename("dir/deep.md", "other/place/deep.md");
      world.rename("x.md", "z.md");
      world.rename("y.md", "x.md");
      world.rename("z.md", "y.md");
      const change = [
        "renamed R  bar.md < M foo.md",
        "added copied.md",
        "deleted edit.md",
        "added edited.md",
        "renamed other/place/deep.md < dir/deep.md",
        "modified x.md",
        "modified y.md",
      ];
      assert.equal(told(netChange(before, [], await seen(world.repository))), change);
    }));
}

test("D1: a folder inside a repository is not one, and is not ready", () =>
  withWorld(async (world) => {
    world.edit("sub/a.md", "1");
    const look = await gitRepository({ path: world.file("sub"), stateFolder: world.stateFolder, system: realSystem }).look();
    assert.is(look.state, "not_ready");
  }));

test("D4: 5,000 changed files with emoji and 200-byte names give one bounded notice, the same from every worker", () =>
  withWorld(async (world) => {
    const count = long ? 5_000 : 1_000;
    const before = await seen(world.repository);
    mkdirSync(world.file("many"));
    for (let index = 0; index < count; index += 1)
      writeFileSync(world.file(`many/${String(index).padStart(4, "0")}${"😀".repeat(49)}`), "1");
    const notice = renderNotice(netChange(before, [], await seen(world.repository)) as never);
    assert.ok(Buffer.byteLength(notice) <= 4_096 && notice.isWellFormed());
    assert.match(notice, new RegExp(`and ${count - notice.split("\n").length + 2} more paths$`, "u"));
    const other = await seen(world.another(join(world.stateFolder, "other")));
    assert.is(renderNotice(netChange(before, [], other) as never), notice);
  }));

test("D12: a notice only where branch or tree differ, through every state of a branch", () =>
  withWorld(async (world) => {
    const hear = listener(world);
    assert.equal(await hear(), [], "unborn");
    world.edit("a.md", "1\n");
    assert.equal(await hear(), ["added a.md"], "an uncommitted file counts");
    world.commit("first");
    assert.equal(await hear(), [], "first commit");
    world.git("branch", "-m", "renamed");
    assert.equal(await hear(), ["branch main > renamed"]);
    world.git("checkout", "-q", "--detach");
    assert.equal(await hear(), ["branch renamed > null"]);
    world.git("checkout", "-q", "renamed");
    assert.equal(await hear(), ["branch null > renamed"]);
    await rebaseAndReset(world, hear);
  }));

async function rebaseAndReset(world: GitWorld, hear: () => Promise<string[]>): Promise<void> {
  world.git("checkout", "-q", "-b", "side");
  world.edit("a.md", "side\n");
  world.commit("side");
  world.git("checkout", "-q", "renamed");
  world.edit("a.md", "main\n");
  world.commit("main");
  await hear();
  assert.throws(() => world.git("rebase", "side"), /conflict|could not apply/iu);
  const conflict = await hear();
  assert.is(conflict[0], "branch renamed > null", "mid-rebase is detached");
  assert.is(conflict[1], "modified a.md");
  world.git("rebase", "--abort");
  assert.equal(await hear(), ["branch null > renamed", "modified a.md"], "as it was before the rebase");
  world.git("commit", "-q", "--amend", "-m", "amended");
  assert.equal(await hear(), [], "amend");
  const head = world.git("rev-parse", "HEAD").trim();
  world.git("reset", "-q", "--hard", "HEAD~1");
  assert.equal(await hear(), ["modified a.md"]);
  world.git("reset", "-q", "--hard", head);
  assert.equal(await hear(), ["modified a.md"], "back");
  world.edit("b.md", "stashed\n");
  assert.equal(await hear(), ["added b.md"]);
  world.git("stash", "-q", "-u");
  assert.equal(await hear(), ["deleted b.md"]);
  world.git("stash", "drop", "-q");
  world.git("reflog", "expire", "--expire=now", "--all");
  world.git("gc", "-q", "--prune=now");
  assert.equal(await hear(), [], "gc and prune");
}

test("D12: abort and reset back are nothing to a session that did not look in between", () =>
  withWorld(async (world) => {
    world.edit("a.md", "1\n");
    world.commit("first");
    world.git("checkout", "-q", "-b", "side");
    world.edit("a.md", "side\n");
    world.commit("side");
    world.git("checkout", "-q", "main");
    world.edit("a.md", "main\n");
    world.commit("main");
    const before = await seen(world.repository);
    assert.throws(() => world.git("rebase", "side"));
    world.git("rebase", "--abort");
    world.git("reset", "-q", "--hard", "HEAD~1");
    world.git("reset", "-q", "--hard", "ORIG_HEAD");
    assert.is(netChange(before, [], await seen(world.repository)), null);
    // A rewritten history whose old commits are gone: one notice of the tree, and no crash.
    world.git("checkout", "-q", "--orphan", "new");
    world.edit("b.md", "1\n");
    world.commit("rewritten");
    world.git("branch", "-q", "-M", "new", "main");
    world.git("branch", "-q", "-D", "side");
    world.git("reflog", "expire", "--expire=now", "--all");
    world.git("gc", "-q", "--prune=now");
    assert.throws(() => world.git("cat-file", "-e", `${before.head}`));
    assert.equal(told(netChange(before, [], await seen(world.repository))), ["added b.md"]);
  }));

test("D12: a branch really named HEAD is told apart from detached and from unborn", () =>
  withWorld(async (world) => {
    world.edit("a.md", "1\n");
    world.commit("first");
    const commit = world.git("rev-parse", "HEAD").trim();
    world.git("update-ref", "refs/heads/HEAD", commit);
    world.git("symbolic-ref", "HEAD", "refs/heads/HEAD");
    assert.equal(pick(await seen(world.repository)), { branch: "HEAD", head: commit });
    world.git("symbolic-ref", "HEAD", "refs/heads/unborn");
    assert.equal(pick(await seen(world.repository)), { branch: "unborn", head: null });
    world.git("update-ref", "--no-deref", "HEAD", commit);
    world.git("checkout", "-q", "--detach", commit);
    assert.equal(pick(await seen(world.repository)), { branch: null, head: commit });
  }));

function pick({ branch, head }: MemoryState): Pick<MemoryState, "branch" | "head"> {
  return { branch, head };
}

test("D11: untracked folders by file, repositories inside by their HEAD, ignored and empty not at all", () =>
  withWorld(async (world) => {
    const hear = listener(world);
    world.edit(".gitignore", "ignored/\n*.log\n");
    world.edit(".git/info/exclude", "private.md\n");
    await hear();
    world.edit("dir/a.md", "1");
    world.edit("dir/b.md", "1");
    assert.equal(await hear(), ["added dir/a.md", "added dir/b.md"]);
    world.edit("dir/a.md", "2");
    assert.equal(await hear(), ["modified dir/a.md"]);
    mkdirSync(world.file("empty"));
    for (const path of ["ignored/x", "x.log", "private.md"]) world.edit(path, "1");
    assert.equal(await hear(), []);
    const inside = world.file("inside");
    mkdirSync(inside);
    git(inside, "init", "-q");
    writeFileSync(join(inside, "a"), "1");
    assert.equal(await hear(), ["added inside"], "a repository inside without a commit");
    world.edit("dir/a.md", "3");
    assert.equal(await hear(), ["modified dir/a.md"]);
    git(inside, "add", "-A");
    git(inside, "commit", "-q", "-m", "first");
    assert.equal(await hear(), ["repository inside"]);
    writeFileSync(join(inside, "a"), "2");
    assert.equal(await hear(), [], "an edit inside is that repository's");
    git(inside, "commit", "-q", "-a", "-m", "second");
    assert.equal(await hear(), ["repository inside"]);
    rmSync(inside, { recursive: true });
    assert.equal(await hear(), ["deleted inside"]);
  }));

test("D11: a linked worktree, whose .git is a file, is a repository like any other", () =>
  withWorld(async (world) => {
    world.edit("a.md", "1");
    world.edit(".git/info/exclude", "private.md\n");
    world.commit("first");
    const folder = temporaryFolder("worktree");
    try {
      const path = join(folder.path, "linked");
      world.git("worktree", "add", "-q", "-b", "linked", path);
      const linked = gitRepository({ path, stateFolder: world.stateFolder, system: realSystem });
      writeFileSync(join(path, "private.md"), "1");
      const state = await seen(linked);
      assert.equal(
        [state.branch, state.head, state.manifest.map((entry) => entry.path)],
        ["linked", world.git("rev-parse", "HEAD").trim(), ["a.md"]],
      );
    } finally {
      folder.remove();
    }
  }));

test("D13: what hides or invents changes in git's own index does neither here", () =>
  withWorld(async (world) => {
    for (const name of ["assumed.md", "skipped.md", "same.md", "touched.md", "script.sh"]) world.edit(name, "text of one length\n");
    world.edit("lines.md", "a\nb\n");
    world.commit("first");
    const hear = listener(world);
    await hear();
    world.git("update-index", "--assume-unchanged", "assumed.md");
    world.git("update-index", "--skip-worktree", "skipped.md");
    world.git("config", "status.showUntrackedFiles", "no");
    world.git("config", "core.trustctime", "false");
    world.git("config", "core.checkStat", "minimal");
    world.git("config", "core.ignoreStat", "true");
    assert.equal(await hear(), []);
    world.edit("assumed.md", "other of one size\n");
    world.edit("skipped.md", "other of one size\n");
    world.edit("untracked.md", "1");
    assert.equal(await hear(), ["modified assumed.md", "modified skipped.md", "added untracked.md"]);
    const { atime, mtime } = statSync(world.file("same.md"));
    world.edit("same.md", "TEXT of one length\n");
    utimesSync(world.file("same.md"), atime, mtime);
    assert.equal(await hear(), ["modified same.md"]);
    utimesSync(world.file("touched.md"), 1, 1);
    assert.equal(await hear(), [], "touched");
    world.chmod("script.sh", true);
    assert.equal(await hear(), ["mode script.sh"]);
    world.chmod("script.sh", false);
    assert.equal(await hear(), ["mode script.sh"]);
    world.git("config", "core.fileMode", "false");
    await hear();
    world.chmod("script.sh", true);
    assert.equal(await hear(), [], "core.fileMode=false");
  }));

test("D13: line ends are normalised the way git add does, also for what a tool writes, and the same in every worker", () =>
  withWorld(async (world) => {
    world.edit(".gitattributes", "*.md text=auto\n*.bin -text\n");
    world.edit("a.md", "a\nb\n");
    world.edit("a.bin", "a\nb\n");
    const hear = listener(world);
    await hear();
    world.edit("a.md", "a\r\nb\r\n");
    assert.equal(await hear(), [], "CRLF only");
    world.edit("a.bin", "a\r\nb\r\n");
    assert.equal(await hear(), ["modified a.bin"]);
    const crlf = Buffer.from("x\r\ny\r\n");
    for (const path of ["a.md", "a.bin"]) {
      const blob = await world.repository.blobOf(path, crlf);
      await world.repository.files.write(path, crlf);
      assert.is((await seen(world.repository)).manifest.find((entry) => entry.path === path)?.blob, blob);
      assert.is(await world.repository.blobNow(path), blob);
      assert.is(world.git("hash-object", path).trim(), blob);
    }
    world.edit(".gitattributes", "* -text\n");
    world.git("config", "core.autocrlf", "true");
    const warm = await seen(world.repository);
    assert.equal(
      warm,
      await seen(world.another(join(world.stateFolder, "cold"))),
      "a kept index and a fresh one agree after the rules changed",
    );
    world.edit(".gitattributes", "");
    assert.equal(await seen(world.repository), await seen(world.another(join(world.stateFolder, "colder"))));
    world.edit(".gitignore", "*.bin\n");
    const ignoring = await seen(world.repository);
    assert.not.ok(
      ignoring.manifest.some(({ path }) => path === "a.bin"),
      "ignored from now on",
    );
    assert.equal(ignoring, await seen(world.another(join(world.stateFolder, "coldest"))));
  }));

test("a repository of SHA-256 objects", () =>
  withWorld(
    async (world) => {
      world.edit("a.md", "1");
      world.commit("first");
      const state = await seen(world.repository);
      assert.is(state.manifest[0]?.blob, world.git("rev-parse", "HEAD:a.md").trim());
      assert.is(state.manifest[0]?.blob, await world.repository.blobNow("a.md"));
      assert.is(state.manifest[0]?.blob.length, 64);
    },
    ["--object-format=sha256"],
  ));

test("D7, D8: a look leaves every byte and time of .git as it was, with a stale lock and read-only", () =>
  withWorld(async (world) => {
    world.edit("PERSONA.md", "You are Ada.");
    for (let index = 0; index < 30; index += 1) world.edit(`notes/${index}.md`, `${index}\n`);
    world.commit("first");
    world.edit("notes/1.md", "uncommitted\n");
    writeFileSync(world.file(".git/index.lock"), "");
    const before = listing(world.file(".git"));
    execFileSync("chmod", ["-R", "a-w", world.file(".git")]);
    try {
      for (let look = 0; look < 3; look += 1) {
        world.edit("notes/2.md", `look ${look}\n`);
        assert.is((await seen(world.repository)).manifest.length, 31);
        assert.is((await world.repository.persona()).state, "ready");
      }
    } finally {
      execFileSync("chmod", ["-R", "u+w", world.file(".git")]);
    }
    assert.equal(listing(world.file(".git")), before);
  }));

/** Every file and folder with its bytes and its time of change. */
function listing(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .sort()
    .map((name) => {
      const { mtimeNs, ino, size } = statSync(join(folder, name), { bigint: true });
      return `${name} ${mtimeNs} ${ino} ${size}`;
    });
}

/** A person's command, while the test goes on. */
function personRuns(cwd: string, ...args: string[]): { done: Promise<string>; child: ChildProcess } {
  const child = spawn("git", args, { cwd, env: personEnv, stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.on("data", (chunk) => (said += chunk));
  const done = new Promise<string>((resolve) => child.once("close", (code) => resolve(code === 0 ? "" : `${code}: ${said}`)));
  return { done, child };
}

test("D8: rebases of 12 commits never fail while looks run without a pause", () =>
  withWorld(async (world) => {
    world.edit("base.md", "0\n");
    world.commit("base");
    world.git("branch", "onto");
    for (let index = 0; index < 12; index += 1) {
      world.edit(`notes/${index}.md`, `${index}\n`);
      world.commit(`commit ${index}`);
    }
    let looks = 0;
    for (let round = 0; round < (long ? 40 : 3); round += 1) {
      world.git("checkout", "-q", "onto");
      world.edit("base.md", `${round + 1}\n`);
      world.commit(`onto ${round}`);
      world.git("checkout", "-q", "main");
      const rebase = personRuns(world.path, "rebase", "-q", "onto");
      let running = true;
      void rebase.done.then(() => (running = false));
      while (running) {
        await seen(world.repository);
        looks += 1;
      }
      assert.is(await rebase.done, "");
    }
    assert.ok(looks >= 3, `${looks} looks`);
    assert.equal((await seen(world.repository)).manifest.length, 13);
    assert.not.ok(existsSync(world.file(".git/index.lock")));
  }));

test("D8: an observer that is killed leaves no lock, and its caches harm no later look", () =>
  withWorld(async (world) => {
    for (let index = 0; index < 300; index += 1) world.edit(`notes/${index}.md`, `${index}\n`);
    world.commit("first");
    const script = `import { gitRepository } from ${JSON.stringify(new URL("../../src/memory/repository.ts", import.meta.url).href)};
      import { realSystem } from ${JSON.stringify(new URL("../../src/system.ts", import.meta.url).href)};
      import { writeFileSync } from "node:fs";
      const repository = gitRepository({ path: ${JSON.stringify(world.path)}, stateFolder: ${JSON.stringify(world.stateFolder)}, system: realSystem });
      for (let look = 0; ; look += 1) { writeFileSync(${JSON.stringify(world.file("notes/1.md"))}, String(look)); await repository.look(); process.stdout.write("."); }`;
    for (let kill = 0; kill < (long ? 50 : 4); kill += 1) await killedObserver(script, 1 + (kill % 5));
    world.edit("notes/1.md", "1\n");
    assert.equal(await seen(world.repository), await seen(world.another(join(world.stateFolder, "cold"))));
    assert.is(world.git("status", "--porcelain"), "");
    assert.equal(
      readdirSync(world.file(".git")).filter((name) => name.endsWith(".lock")),
      [],
    );
    // What it left is removed by a worker that starts later.
    const [folder = ""] = readdirSync(world.stateFolder).filter((name) => existsSync(join(world.stateFolder, name, "home")));
    const left = (): string[] => readdirSync(join(world.stateFolder, folder)).filter((name) => name.startsWith("look-"));
    mkdirSync(join(world.stateFolder, folder, "look-left"));
    for (const name of left()) utimesSync(join(world.stateFolder, folder, name), 1, 1);
    await seen(world.another());
    assert.equal(left(), []);
  }));

/** Killed with SIGKILL right after its n-th look, so in the midst of the next. */
async function killedObserver(script: string, looks: number): Promise<void> {
  const child = spawn(process.execPath, ["--import", "tsx", "--input-type=module", "-e", script], {
    cwd: new URL("../..", import.meta.url),
    stdio: ["ignore", "pipe", "inherit"],
  });
  let said = 0;
  child.stdout.on("data", (chunk: Buffer) => {
    said += chunk.length;
    if (said >= looks) child.kill("SIGKILL");
  });
  const signal = await new Promise((resolve) => child.once("close", (_code, how) => resolve(how)));
  assert.is(signal, "SIGKILL");
}

test("D8: two workers that share their caches, and one of its own, see the same at any time", () =>
  withWorld(async (world) => {
    const workers = [world.repository, world.another(), world.another(join(world.stateFolder, "own"))];
    for (let round = 0; round < 6; round += 1) {
      world.edit(`notes/${round}.md`, `${round}`);
      world.edit("notes/all.md", `${round}`);
      const states = await Promise.all(workers.map((worker) => seen(worker)));
      for (const state of states) assert.equal(state, states[0]);
      assert.is(states[0]?.manifest.length, round + 2);
    }
  }));

/** How a person breaks it, and mends it. */
type Refusal = [what: string, breakIt: (world: GitWorld) => void, mend: (world: GitWorld) => void];

const refusals: Refusal[] = [
  ["core.bare set", (world) => world.git("config", "core.bare", "true"), (world) => world.git("config", "core.bare", "false")],
  [
    "a configuration that git cannot read",
    (world) => world.edit(".git/config", "[core\n"),
    (world) => world.edit(".git/config", "[core]\n\tbare = false\n"),
  ],
  ["a HEAD that names nothing", (world) => world.edit(".git/HEAD", "x\n"), (world) => world.edit(".git/HEAD", "ref: refs/heads/main\n")],
];
// Only root may give a folder away; another user proves it with a folder that is not theirs, which a test cannot make.
if (process.getuid?.() === 0)
  refusals.push(["a foreign owner", (world) => chownSync(world.path, 65_534, 65_534), (world) => chownSync(world.path, 0, 0)]);

for (const [what, breakIt, mend] of refusals) {
  test(`D9: ${what} is an error, and after the repair one change tells all`, () =>
    withWorld(async (world) => {
      for (const name of ["a.md", "b.md", "c.md"]) world.edit(name, "1");
      world.commit("first");
      const before = await seen(world.repository);
      breakIt(world);
      for (const name of ["a.md", "b.md", "d.md"]) world.edit(name, "2");
      assert.is(await codeOf(world.repository.look()), "memory_unreadable");
      assert.is(await codeOf(world.repository.persona()), "memory_unreadable");
      const error = await world.repository.look().catch((failure: { data: object }) => failure);
      assert.equal(Object.keys((error as { data: object }).data), ["command", "exitCode"]);
      mend(world);
      assert.equal(told(netChange(before, [], await seen(world.repository))), ["modified a.md", "modified b.md", "added d.md"]);
    }));
}

test("D9: a missing folder, no repository and a bare one are not ready, with a reason", () =>
  withWorld(async (world) => {
    const folder = temporaryFolder("unready");
    try {
      git(folder.path, "init", "-q", "--bare", "bare.git");
      mkdirSync(join(folder.path, "plain"));
      writeFileSync(join(folder.path, "file"), "1");
      const reasons: Record<string, RegExp> = {
        "bare.git": /bare repository/u,
        plain: /not the top folder/u,
        none: /does not exist/u,
        file: /not a folder/u,
      };
      for (const [name, reason] of Object.entries(reasons)) {
        const repository = gitRepository({ path: join(folder.path, name), stateFolder: world.stateFolder, system: realSystem });
        for (const answer of [await repository.look(), await repository.persona()]) {
          assert.is(answer.state, "not_ready", name);
          assert.match((answer as { reason: string }).reason, reason);
        }
        assert.is(await codeOf(repository.files.read("a")), "memory_unreadable");
      }
    } finally {
      folder.remove();
    }
  }));

test("D9: a corrupt index of the user's does not matter, and a corrupt one of ours is made again", () =>
  withWorld(async (world) => {
    world.edit("a.md", "1");
    world.commit("first");
    const before = await seen(world.repository);
    world.edit(".git/index", "nonsense");
    assert.equal(await seen(world.repository), before);
    const [folder = ""] = readdirSync(world.stateFolder);
    for (const name of readdirSync(join(world.stateFolder, folder))) {
      if (name.startsWith("index-")) writeFileSync(join(world.stateFolder, folder, name), "nonsense");
    }
    assert.equal(await seen(world.repository), before);
    rmSync(world.stateFolder, { recursive: true });
    assert.equal(await seen(world.another()), before, "the caches may be removed at any time");
  }));

test("D9: a folder or a file that cannot be read is an error, never a deletion", () =>
  withWorld(async (world) => {
    world.edit("dir/a.md", "1");
    world.edit("b.md", "1");
    world.commit("first");
    const [script, mode] = unprivilegedLook(world);
    const look = (): string =>
      execFileSync(
        "setpriv",
        ["--reuid=65534", "--regid=65534", "--clear-groups", process.execPath, "--import", "tsx", "--input-type=module", "-e", script],
        {
          cwd: new URL("../..", import.meta.url),
          env: { PATH: process.env["PATH"], HOME: "/nonexistent", TMPDIR: mode },
          encoding: "utf8",
          stdio: ["ignore", "pipe", "inherit"],
        },
      );
    if (process.getuid?.() !== 0) return void (await unreadableAsMyself(world));
    assert.is(look(), "ready 2");
    for (const path of ["dir", "b.md"]) {
      chmodSync(world.file(path), 0);
      assert.match(look(), /^memory_unreadable .*[Pp]ermission denied/su, path);
      chmodSync(world.file(path), path === "dir" ? 0o755 : 0o644);
    }
    assert.is(look(), "ready 2");
  }));

/** Root may read everything: so another user looks. The copy is theirs, since git refuses what is not. */
function unprivilegedLook(world: GitWorld): [script: string, temporary: string] {
  const folder = join(world.path, "..");
  const own = join(folder, "unprivileged");
  mkdirSync(own);
  chmodSync(folder, 0o755);
  if (process.getuid?.() === 0) execFileSync("chown", ["-R", "65534:65534", own, world.path]);
  const module = (name: string): string => JSON.stringify(new URL(`../../src/${name}`, import.meta.url).href);
  const script = `import { gitRepository } from ${module("memory/repository.ts")};
    import { realSystem } from ${module("system.ts")};
    const repository = gitRepository({ path: ${JSON.stringify(world.path)}, stateFolder: ${JSON.stringify(join(own, "state"))}, system: realSystem });
    const text = await repository.look().then((look) => look.state + " " + look.seen.manifest.length, (error) => error.code + " " + error.message);
    process.stdout.write(text);`;
  return [script, own];
}

async function unreadableAsMyself(world: GitWorld): Promise<void> {
  for (const path of ["dir", "b.md"]) {
    chmodSync(world.file(path), 0);
    assert.is(await codeOf(world.repository.look()), "memory_unreadable", path);
    chmodSync(world.file(path), path === "dir" ? 0o755 : 0o644);
  }
}

test("an unchanged look starts no list, and a look after a look under other settings starts over", () =>
  withWorld(async (world) => {
    world.edit("a.md", "1\r\n");
    // Git reads a file again that changed in the moment in which its index was written.
    utimesSync(world.file("a.md"), 1_000, 1_000);
    const first = await world.repository.look();
    const again = await world.repository.look();
    if (first.state !== "ready" || again.state !== "ready") throw new Error("not ready");
    assert.is(again.seen.manifest, first.seen.manifest, "the same list, not an equal one");
    world.git("config", "core.autocrlf", "input");
    assert.is.not((await seen(world.repository)).state, first.seen.state);
    assert.equal(await seen(world.repository), await seen(world.another(join(world.stateFolder, "cold"))));
  }));

test("a repository that is copied elsewhere is the same state", () =>
  withWorld(async (world) => {
    world.edit("a.md", "1");
    world.commit("first");
    const folder = temporaryFolder("copy");
    try {
      cpSync(world.path, join(folder.path, "copy"), { recursive: true });
      const copy = gitRepository({ path: join(folder.path, "copy"), stateFolder: world.stateFolder, system: realSystem });
      assert.equal(await seen(copy), await seen(world.repository));
      assert.ok(readFileSync(join(folder.path, "copy/a.md"), "utf8"));
    } finally {
      folder.remove();
    }
  }));

test.run();
