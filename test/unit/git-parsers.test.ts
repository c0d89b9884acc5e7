/** Git's answers as recorded bytes, and the environment in which git runs. */
import { delimiter } from "node:path";
import {
  addCommand,
  branchCommand,
  hashCommand,
  openCommand,
  parseStaged,
  recordsOf,
  settingsCommand,
} from "../../src/memory/git-commands.ts";
import { excludePatterns } from "../../src/memory/nested.ts";
import { environment } from "../../src/memory/runner.ts";
import { sharedLook } from "../../src/memory/shared-look.ts";
import { realSystem } from "../../src/system.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("git's answers");
const blob = "45b983be36b73c0788dc9cbcb76cbb80fc7bb057";

test("D1: a staged list: modes, tabs, newlines, quotes and bytes that are not UTF-8 in names", () => {
  const names = ["a b", "tab\there", "new\nline", 'quo"te', "日本/😀", "back\\slash", " lead"];
  const latin = Buffer.concat([Buffer.from(`160000 ${blob} 0\tcaf`), Buffer.from([0xe9, 0])]);
  const output = Buffer.concat([Buffer.from(names.map((name) => `100644 ${blob} 0\t${name}\0`).join("")), latin]);
  const entries = parseStaged(output);
  assert.equal(
    entries.map((entry) => entry.path),
    [...names.slice(0, 5), "back\\\\slash", " lead", "caf\\xe9"],
  );
  assert.equal(parseStaged(output.subarray(0, -latin.length)), entries.slice(0, -1), "as text and as bytes alike");
  assert.equal(entries.at(-1), { path: "caf\\xe9", mode: "160000", blob });
  assert.equal(parseStaged(Buffer.alloc(0)), []);
});

test("a list that was cut off is an error, never a shorter list", () => {
  assert.throws(() => recordsOf(Buffer.from(`100644 ${blob} 0\ta\x00100644 ${blob} 0\tb`)), /middle of a record/u);
  assert.equal(recordsOf(Buffer.from("\0a\0")).map(String), ["", "a"]);
});

test("D12: unborn, detached, a branch, and one called HEAD", () => {
  assert.is(branchCommand.parse(Buffer.alloc(0)), null);
  assert.is(branchCommand.parse(Buffer.from("refs/heads/HEAD\n")), "refs/heads/HEAD");
  const opened = (tail: string) => openCommand.parse(`false\nsha1\n/a/.git\n${tail}`);
  assert.equal(opened(""), { bare: false, objectFormat: "sha1", commonDir: "/a/.git", head: null });
  for (const name of ["HEAD", "refs/heads/main", "refs/heads/HEAD"])
    assert.equal(opened(`${blob}\n${name}\n`), { bare: false, objectFormat: "sha1", commonDir: "/a/.git", head: { commit: blob, name } });
});

test("what git opens, with a newline in its path", () => {
  assert.equal(openCommand.parse("false\nsha256\n/a\nb/.git\n"), {
    bare: false,
    objectFormat: "sha256",
    commonDir: "/a\nb/.git",
    head: null,
  });
  assert.is(openCommand.parse("true\nsha1\n/a\n").bare, true);
});

test("only settings that change a blob or a mode are heeded; the last one wins", () => {
  const output = [
    "core.autocrlf\ntrue",
    "core.fsmonitor\n/bin/evil",
    "filter.x.clean\nevil\nmore",
    "core.autocrlf\ninput",
    "core.symlinks",
    "core.excludesfile\n/tmp/x\ny",
    "",
  ].join("\0");
  assert.equal(settingsCommand.parse(output), {
    values: ["core.autocrlf=input", "core.symlinks=true"],
    excludesFile: "/tmp/x\ny",
    oneFile: true,
  });
  assert.equal(settingsCommand.parse(""), { values: [], excludesFile: null, oneFile: true });
  for (const key of ["include.path", "includeif.gitdir:/x.path", "extensions.worktreeconfig"])
    assert.is(settingsCommand.parse(`${key}\ntrue\0`).oneFile, false);
});

test("a command's arguments hold the settings before its name, and a path behind its option", () => {
  assert.equal(addCommand(["core.eol=lf"], "/x").args.slice(0, 4), ["-c", "core.eol=lf", "-c", "core.excludesFile=/x"]);
  assert.equal(hashCommand([], "--stdin-paths").args, ["hash-object", "--path=--stdin-paths", "--stdin"]);
});

test("D7: the environment is made from nothing, and PATH has absolute folders only", () => {
  const before = { ...process.env };
  Object.assign(process.env, {
    GIT_DIR: "/decoy",
    GIT_TRACE: "1",
    GIT_CONFIG_COUNT: "1",
    EDITOR: "evil",
    SSH_ASKPASS: "evil",
    PATH: [".", "bin", "", "/usr/bin"].join(delimiter),
  });
  try {
    const env = environment({ root: "/a/b", home: "/h", system: realSystem, own: { gitDir: "/g", index: "/i", objects: "/o" } });
    assert.is(env["PATH"], "/usr/bin");
    assert.is(env["GIT_DIR"], "/g");
    for (const name of ["GIT_TRACE", "GIT_CONFIG_COUNT", "EDITOR", "SSH_ASKPASS"]) assert.is(env[name], undefined, name);
    assert.is(environment({ root: "/a/b", home: "/h", system: realSystem })["GIT_DIR"], undefined);
  } finally {
    for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
    Object.assign(process.env, before);
  }
});

test("patterns that leave out one folder name it, whatever its name holds", () => {
  assert.is(excludePatterns(["a b/[c]*?", "!x#", "back\\\\slash"]).toString(), "/a\\ b/\\[c\\]\\*\\?/\n/\\!x\\#/\n/back\\\\slash/\n");
});

test("a scan is shared only by those who asked before it began", async () => {
  const ends: ((value: number) => void)[] = [];
  const look = sharedLook(() => new Promise<number>((resolve) => ends.push(resolve)));
  const first = look();
  const [second, third] = [look(), look()];
  assert.is(ends.length, 1);
  ends[0]?.(1);
  assert.is(await first, 1);
  const fourth = look();
  while (ends.length < 2) await Promise.resolve();
  const fifth = look();
  ends[1]?.(2);
  assert.equal(await Promise.all([second, third, fourth]), [2, 2, 2]);
  while (ends.length < 3) await Promise.resolve();
  ends[2]?.(3);
  assert.is(await fifth, 3);
  assert.is(ends.length, 3);
});

test("a scan that fails fails for its askers alone", async () => {
  let scans = 0;
  const look = sharedLook(async () => {
    scans += 1;
    if (scans === 1) throw new Error("first");
    return scans;
  });
  const [first, second] = await Promise.allSettled([look(), look()]);
  assert.is(first?.status, "rejected");
  assert.equal(second, { status: "fulfilled", value: 2 });
  assert.is(await look(), 3);
});

test.run();
