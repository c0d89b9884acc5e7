/** A repository that is not trusted: nothing that it names is run, nothing outside it is read, nothing waits for ever. */
import { execFileSync, spawn } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { netChange } from "../../src/domain/net-change.ts";
import { listCommand } from "../../src/memory/git-commands.ts";
import { runGit } from "../../src/memory/runner.ts";
import { realSystem } from "../../src/system.ts";
import { codeOf, seen, told } from "../conformance/memory-suite.ts";
import { git, temporaryFolder } from "../support/git.ts";
import { type GitWorld, gitWorld } from "../support/git-world.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("hostile git", { timeoutMs: 60_000 });

async function withWorld(run: (world: GitWorld) => Promise<void>, init: readonly string[] = []): Promise<void> {
  const world = gitWorld(init);
  try {
    await run(world);
  } finally {
    world.dispose();
  }
}

/** Programs that each leave a file behind when they are run. */
function markers(): { program(name: string): string; fired(): string[]; clear(): void; remove(): void } {
  const folder = temporaryFolder("markers");
  const fires = join(folder.path, "fired");
  mkdirSync(fires);
  return {
    program(name) {
      const path = join(folder.path, name);
      writeFileSync(path, `#!/bin/sh\n: > ${join(fires, name)}\ncat 2>/dev/null\n`, { mode: 0o755 });
      return path;
    },
    fired: () => readdirSync(fires).sort(),
    clear() {
      for (const name of readdirSync(fires)) rmSync(join(fires, name));
    },
    remove: folder.remove,
  };
}

const configured = [
  "core.fsmonitor",
  "core.pager",
  "core.editor",
  "core.sshCommand",
  "core.askPass",
  "core.gitProxy",
  "core.alternateRefsCommand",
  "diff.external",
  "diff.evil.textconv",
  "diff.evil.command",
  "filter.evil.clean",
  "filter.evil.smudge",
  "merge.evil.driver",
  "credential.helper",
  "gpg.program",
  "pager.add",
  "pager.config",
  "sequence.editor",
  "uploadpack.packObjectsHook",
  "interactive.diffFilter",
  "trailer.x.command",
];

/** All that a repository's configuration can name, each with a marker of its own; some by an included file. */
function arm(world: { git(...args: string[]): string; file(path: string): string }, program: (name: string) => string): void {
  for (const key of configured) world.git("config", key, program(key));
  for (const name of ["status", "add", "rev-parse", "ls-files", "symbolic-ref", "config", "hash-object"])
    world.git("config", `alias.${name}`, `!${program(`alias.${name}`)}`);
  world.git("config", "filter.evil.required", "true");
  const more = world.file(".git/more");
  writeFileSync(
    more,
    `[filter "included"]\n\tclean = ${program("filter.included.clean")}\n\tprocess = ${program("filter.included.process")}\n\trequired = true\n[core]\n\tfsmonitor = ${program("included.fsmonitor")}\n`,
  );
  world.git("config", "include.path", more);
  const hooks = world.file(".git/armed-hooks");
  mkdirSync(hooks);
  for (const hook of [
    "post-index-change",
    "post-checkout",
    "reference-transaction",
    "pre-commit",
    "fsmonitor-watchman",
    "pre-auto-gc",
    "post-rewrite",
  ])
    writeFileSync(join(hooks, hook), `#!/bin/sh\nexec ${program(`hook.${hook}`)}\n`, { mode: 0o755 });
  world.git("config", "core.hooksPath", hooks);
}

test("D5: nothing that the configuration, hooks or attributes name is run; with bare git the markers fire", () =>
  withWorld(async (world) => {
    const marker = markers();
    try {
      world.edit("PERSONA.md", "You are Ada.");
      world.edit("a.evil", "1");
      world.edit("b.included", "1");
      world.commit("first");
      arm(world, marker.program);
      world.edit("plain.md", "1");
      world.git("add", "plain.md");
      world.edit(".gitattributes", "*.evil filter=evil diff=evil merge=evil\n*.included filter=included\n");
      world.edit("a.evil", "2");
      for (const command of [["status"], ["add", "a.evil"]]) {
        try {
          world.git(...command);
        } catch {
          // A marker is no proper filter, so git fails; that it was run is the proof.
        }
      }
      for (const name of ["included.fsmonitor", "filter.evil.clean", "hook.post-index-change"])
        assert.ok(marker.fired().includes(name), `bare git did not run ${name}: ${marker.fired()}`);
      marker.clear();

      await world.repository.persona();
      let before = await seen(world.repository);
      for (const text of ["3", "4", "5"]) {
        for (const path of ["a.evil", "b.included", "c.evil"]) world.edit(path, text);
        const now = await seen(world.repository);
        assert.ok(netChange(before, [], now) !== null);
        assert.is(await world.repository.blobNow("a.evil"), now.manifest.find(({ path }) => path === "a.evil")?.blob);
        before = now;
      }
      assert.is((await world.repository.persona()).state, "ready");
      assert.equal(marker.fired(), []);
    } finally {
      marker.remove();
    }
  }));

test("D5: nothing of a repository inside is run either; with bare git its filter fires", () =>
  withWorld(async (world) => {
    const marker = markers();
    try {
      const inside = world.file("inside");
      mkdirSync(inside);
      git(inside, "init", "-q");
      writeFileSync(join(inside, "a.evil"), "1");
      git(inside, "add", "-A");
      git(inside, "commit", "-q", "-m", "first");
      world.edit("a.md", "1");
      git(world.path, "-c", "advice.addEmbeddedRepo=false", "add", "-A");
      world.git("commit", "-q", "-m", "with a repository inside");
      arm({ git: (...args) => git(inside, ...args), file: (path) => join(inside, path) }, marker.program);
      writeFileSync(join(inside, ".git/info/attributes"), "*.evil filter=evil\n");
      writeFileSync(join(inside, "a.evil"), "22");
      try {
        world.git("status");
      } catch {
        // As above.
      }
      assert.ok(marker.fired().length > 0, "bare git ran nothing inside");
      marker.clear();
      for (let look = 0; look < 3; look += 1) {
        world.edit("a.md", `look ${look}`);
        writeFileSync(join(inside, "a.evil"), `look ${look}`);
        assert.ok((await seen(world.repository)).manifest.some(({ path, mode }) => path === "inside" && mode === "160000"));
      }
      assert.equal(marker.fired(), []);
    } finally {
      marker.remove();
    }
  }));

test("D5: a program called git in the repository is not taken for git, also with `.` in PATH", () =>
  withWorld(async (world) => {
    const marker = markers();
    const path = process.env["PATH"] ?? "";
    try {
      world.edit("git", readFileSync(marker.program("git"), "utf8"));
      world.chmod("git", true);
      process.env["PATH"] = `.::${path}`;
      assert.is((await seen(world.repository)).manifest.length, 1);
      assert.equal(marker.fired(), []);
    } finally {
      process.env["PATH"] = path;
      marker.remove();
    }
  }));

test("D7: inherited variables lead nowhere: only the Memory Repository is seen, the decoy is untouched", () =>
  withWorld(async (world) => {
    const decoy = gitWorld();
    const before = { ...process.env };
    try {
      world.edit("PERSONA.md", "You are Ada.");
      decoy.edit("decoy.md", "decoy");
      decoy.commit("decoy");
      const untouched = fingerprint(decoy.path);
      const git = join(decoy.path, ".git");
      Object.assign(process.env, {
        GIT_DIR: git,
        GIT_WORK_TREE: decoy.path,
        GIT_INDEX_FILE: join(git, "index"),
        GIT_OBJECT_DIRECTORY: join(git, "objects"),
        GIT_ALTERNATE_OBJECT_DIRECTORIES: join(git, "objects"),
        GIT_COMMON_DIR: git,
        GIT_NAMESPACE: "decoy",
        GIT_PREFIX: "decoy",
        GIT_CEILING_DIRECTORIES: world.path,
        GIT_SSL_CAINFO: "/none",
        GIT_SSH_COMMAND: "/none",
        GIT_PAGER: "/none",
        PAGER: "/none",
        EDITOR: "/none",
        VISUAL: "/none",
        GIT_EDITOR: "/none",
        GIT_TRACE: join(decoy.path, "trace"),
        GIT_TRACE2: join(decoy.path, "trace2"),
        GIT_CONFIG_COUNT: "1",
        GIT_CONFIG_KEY_0: "core.worktree",
        GIT_CONFIG_VALUE_0: decoy.path,
        GIT_CONFIG_PARAMETERS: `'core.worktree=${decoy.path}'`,
        GIT_EXTERNAL_DIFF: "/none",
        GIT_EXEC_PATH: decoy.path,
        GIT_TEMPLATE_DIR: decoy.path,
        GIT_ASKPASS: "/none",
        SSH_ASKPASS: "/none",
        GIT_LITERAL_PATHSPECS: "0",
        GIT_OPTIONAL_LOCKS: "1",
      });
      assert.equal(await world.repository.persona(), { state: "ready", body: "You are Ada." });
      const state = await seen(world.repository);
      assert.equal(
        state.manifest.map(({ path }) => path),
        ["PERSONA.md"],
      );
      await world.repository.files.write("b.md", Buffer.from("b"));
      assert.equal(told(netChange(state, [], await seen(world.repository))), ["added b.md"]);
      assert.equal(fingerprint(decoy.path), untouched);
    } finally {
      for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
      Object.assign(process.env, before);
      decoy.dispose();
    }
  }));

/** Every file below a folder with its size, time and, where it is small, its bytes. */
function fingerprint(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => {
      const path = join(entry.parentPath, entry.name);
      const { mtimeNs, size, ino } = statSync(path, { bigint: true });
      return `${path} ${mtimeNs} ${size} ${ino} ${readFileSync(path, "base64").slice(0, 4_000)}`;
    })
    .sort();
}

test("a PERSONA.md that is a symlink, a folder, a pipe or unreachable is an error at once, never empty", () =>
  withWorld(async (world) => {
    const outside = temporaryFolder("outside");
    try {
      writeFileSync(join(outside.path, "secret"), "secret");
      const persona = world.file("PERSONA.md");
      const kinds: Record<string, () => void> = {
        symlink: () => symlinkSync(join(outside.path, "secret"), persona),
        "dangling symlink": () => symlinkSync("nowhere", persona),
        folder: () => mkdirSync(persona),
        pipe: () => execFileSync("mkfifo", [persona]),
      };
      for (const [kind, make] of Object.entries(kinds)) {
        make();
        assert.is(await codeOf(world.repository.persona()), "memory_unreadable", kind);
        rmSync(persona, { recursive: true });
      }
      assert.equal(await world.repository.persona(), { state: "ready", body: "" });
    } finally {
      outside.remove();
    }
  }));

test("the jail follows no symlink and opens nothing special", () =>
  withWorld(async (world) => {
    const outside = temporaryFolder("outside");
    try {
      writeFileSync(join(outside.path, "secret"), "secret");
      symlinkSync(outside.path, world.file("folder"));
      symlinkSync(join(outside.path, "secret"), world.file("file"));
      execFileSync("mkfifo", [world.file("pipe")]);
      for (const path of ["folder/secret", "file", "pipe", "folder"]) {
        assert.is(await codeOf(world.repository.files.read(path)), "invalid_input", path);
        assert.is(await codeOf(world.repository.files.write(path, Buffer.from("x"))), "invalid_input", path);
        assert.is(await codeOf(world.repository.blobNow(path)), "invalid_input", path);
      }
      assert.is(await codeOf(world.repository.files.write("folder/new/x", Buffer.from("x"))), "invalid_input");
      assert.is(await codeOf(world.repository.files.list("folder", 9)), "invalid_input");
      assert.equal(await world.repository.files.list("", 9), { paths: [], more: false });
      assert.equal(readdirSync(outside.path), ["secret"]);
      assert.is(readFileSync(join(outside.path, "secret"), "utf8"), "secret");
      assert.equal(
        (await seen(world.repository)).manifest.map(({ path, mode }) => `${mode} ${path}`),
        ["120000 file", "120000 folder"],
      );
    } finally {
      outside.remove();
    }
  }));

test("names that git refuses, pipes and a file turned into a pipe end no look", () =>
  withWorld(async (world) => {
    world.edit("a.md", "1");
    world.edit("b.md", "1");
    await seen(world.repository);
    execFileSync("mkfifo", [world.file("pipe")]);
    world.remove("b.md");
    execFileSync("mkfifo", [world.file("b.md")]);
    world.edit(".GIT/config", "x");
    world.edit("sub/git~1/config", "x");
    world.edit("back\\slash", "x");
    writeFileSync(Buffer.concat([Buffer.from(`${world.path}/caf`), Buffer.from([0xe9])]), "x");
    const { manifest } = await seen(world.repository);
    assert.equal(
      manifest.map(({ path }) => path),
      ["a.md", "back\\\\slash", "caf\\xe9", "sub/git~1/config"],
    );
    assert.is(Buffer.from(await world.repository.files.read("caf\\xe9")).toString(), "x");
    assert.is(Buffer.from(await world.repository.files.read("back\\\\slash")).toString(), "x");
    assert.ok((await world.repository.files.list("", 9)).paths.includes("caf\\xe9"));
  }));

test("a half-written file of a crash is no part of a state or a list, and goes with a later write", () =>
  withWorld(async (world) => {
    world.edit(".gitignore", "!*\n");
    const before = await seen(world.repository);
    const half = "notes/.headfast-00000000-0000-4000-8000-000000000000.tmp";
    world.edit(half, "half");
    assert.is((await seen(world.repository)).state, before.state);
    assert.equal(await world.repository.files.list("notes", 9), { paths: [], more: false });
    assert.is(await codeOf(world.repository.files.write(half, Buffer.from("x"))), "invalid_input");
    await world.repository.files.write("notes/a.md", Buffer.from("1"));
    assert.ok(existsSync(world.file(half)), "it may still be written by somebody");
    utimesSync(world.file(half), 1, 1);
    await world.repository.files.write("notes/b.md", Buffer.from("1"));
    assert.not.ok(existsSync(world.file(half)));
  }));

test("git that takes too long or prints too much is stopped with all that it started", () =>
  withWorld(async (world) => {
    world.edit("a.md", "1");
    world.git("add", "-A");
    const place = { root: world.path, home: world.stateFolder, system: realSystem };
    const error = await runGit(place, listCommand, undefined, { ms: 60_000, outputBytes: 10 }).catch((failure: Error) => failure);
    assert.match((error as Error).message, /git ls-files failed.*more than 10 bytes and was stopped/u);
    const childFile = world.file("child");
    const sleeper = { args: ["-c", `alias.wait=!sleep 600 & echo $! > '${childFile}'; wait`, "wait"], parse: () => undefined };
    const late = await runGit(place, sleeper, undefined, { ms: 1_000, outputBytes: 10 }).catch((failure: Error) => failure);
    assert.match((late as Error).message, /longer than 1000 ms and was stopped/u);
    const child = Number(readFileSync(childFile, "utf8"));
    assert.not.ok(isAlive(child), "the grandchild lives on");
  }));

/** A process that nobody has waited for yet is dead as well. */
function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/u.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

test("D9: without git on the PATH a look is an error that says so", () =>
  withWorld(async (world) => {
    world.edit("a.md", "1");
    const path = process.env["PATH"];
    process.env["PATH"] = "/nonexistent";
    try {
      const error = await world.repository.look().catch((failure: Error) => failure);
      assert.match((error as Error).message, "ENOENT");
      assert.is(await codeOf(world.repository.persona()), "memory_unreadable");
    } finally {
      process.env["PATH"] = path;
    }
    assert.is((await seen(world.repository)).manifest.length, 1);
  }));

test("I10: between looks no child, timer or handle is left, and a process that only looked ends by itself", () =>
  withWorld(async (world) => {
    world.edit("PERSONA.md", "You are Ada.");
    const script = `import { gitRepository } from ${JSON.stringify(new URL("../../src/memory/repository.ts", import.meta.url).href)};
      import { realSystem } from ${JSON.stringify(new URL("../../src/system.ts", import.meta.url).href)};
      const repository = gitRepository({ path: ${JSON.stringify(world.path)}, stateFolder: ${JSON.stringify(world.stateFolder)}, system: realSystem });
      await Promise.all([repository.look(), repository.look(), repository.persona()]);
      await repository.files.write("a.md", Buffer.from("1"));
      console.log(JSON.stringify(process.getActiveResourcesInfo().filter((name) => !/^(TTYWrap|PipeWrap|MessagePort|FSReqPromise|CloseReq)$/.test(name))));`;
    const child = spawn(process.execPath, ["--import", "tsx", "--input-type=module", "-e", script], {
      cwd: new URL("../..", import.meta.url),
      stdio: ["ignore", "pipe", "inherit"],
    });
    let said = "";
    child.stdout.on("data", (chunk) => (said += chunk));
    assert.is(await new Promise((resolve) => child.once("close", resolve)), 0);
    assert.equal(JSON.parse(said), []);
    const kept = readdirSync(world.stateFolder).flatMap((name) => readdirSync(join(world.stateFolder, name)));
    assert.equal(
      kept.filter((name) => name.startsWith("look-")),
      [],
    );
  }));

test("a state folder that others may write to, or inside the repository, is refused", () =>
  withWorld(async (world) => {
    world.edit("a.md", "1");
    const open = temporaryFolder("open");
    try {
      chmodSync(open.path, 0o777);
      assert.is(await codeOf(world.another(open.path).look()), "configuration");
      assert.is(await codeOf(world.another(join(world.path, ".git/cache")).look()), "configuration");
    } finally {
      open.remove();
    }
  }));

test.run();
