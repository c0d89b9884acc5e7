/** What every Memory Repository does, in memory or on git (I6, I7): one suite for the fake and for the real adapter. */
import { HeadfastError } from "../../src/domain/errors.ts";
import { limits } from "../../src/domain/limits.ts";
import { manifestId } from "../../src/domain/manifest.ts";
import { mergeWrote, type NetChange, netChange } from "../../src/domain/net-change.ts";
import type { MemoryRepository } from "../../src/domain/ports.ts";
import type { MemoryState, Wrote } from "../../src/domain/records.ts";
import { assert, suite } from "../support/suite.ts";

/** A repository of one test, with what a person may do to it. Made on the unborn branch `main`, empty. */
export interface MemoryWorld {
  repository: MemoryRepository;
  edit(path: string, text: string | Uint8Array): void;
  remove(path: string): void;
  rename(from: string, to: string): void;
  chmod(path: string, executable: boolean): void;
  switchTo(branch: string | null): void;
  commit(message: string): void;
  /** Looks and reads fail until `repair`. */
  breakIt(): void;
  repair(): void;
  /** Not a repository (yet), until `ready`. */
  unready(): void;
  ready(): void;
  dispose(): void;
}

type Case = (world: MemoryWorld) => Promise<void>;

/** The state that a look finds. */
export async function seen(repository: MemoryRepository): Promise<MemoryState> {
  const look = await repository.look();
  if (look.state !== "ready") throw new Error(`not ready: ${look.reason}`);
  return look.seen;
}

/** The code of what it rejects with. */
export async function codeOf(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    () => new Error("it did not fail"),
    (failure: unknown) => failure,
  );
  if (!(error instanceof HeadfastError)) throw error;
  return error.code;
}

/** Statuses and paths in few words, e.g. `renamed b < a`. */
export function told(change: NetChange | null): string[] {
  if (change === null) return [];
  const branch = change.branch === null ? [] : [`branch ${change.branch.from} > ${change.branch.to}`];
  return [...branch, ...change.paths.map((path) => `${path.status} ${path.path}${path.status === "renamed" ? ` < ${path.from}` : ""}`)];
}

const cases: Record<string, Case> = {
  async "an empty unborn repository is ready: empty persona, branch without a commit, no files"({ repository }) {
    assert.equal(await repository.persona(), { state: "ready", body: "" });
    const state = await seen(repository);
    assert.equal({ ...state }, { state: manifestId([]), branch: "main", head: null, manifest: [] });
  },

  async "the persona is PERSONA.md's body, as it is at each call"({ repository, edit, remove }) {
    edit("PERSONA.md", "---\npinned: true\n---\n\n  You are Ada. \n");
    assert.equal(await repository.persona(), { state: "ready", body: "\n  You are Ada. \n" });
    edit("PERSONA.md", "You are Bea.");
    assert.equal(await repository.persona(), { state: "ready", body: "You are Bea." });
    remove("PERSONA.md");
    assert.equal(await repository.persona(), { state: "ready", body: "" });
  },

  async "I6: a persona over its limit is an error that says the limit"({ repository, edit }) {
    edit("PERSONA.md", "x".repeat(limits.personaBytesMax));
    assert.is((await repository.persona()).state, "ready");
    edit("PERSONA.md", "x".repeat(limits.personaBytesMax + 1));
    assert.is(await codeOf(repository.persona()), "input_too_large");
    edit("PERSONA.md", "x".repeat(limits.personaFileBytesMax + 1));
    assert.is(await codeOf(repository.persona()), "input_too_large");
  },

  async "I6: not ready is an answer with a reason, and ends"({ repository, edit, unready, ready }) {
    edit("PERSONA.md", "You are Ada.");
    unready();
    const [persona, look] = [await repository.persona(), await repository.look()];
    assert.is(persona.state, "not_ready");
    assert.is(look.state, "not_ready");
    if (look.state === "not_ready") assert.ok(look.reason.length > 0);
    ready();
    assert.equal(await repository.persona(), { state: "ready", body: "You are Ada." });
  },

  async "I6: a failure is an error, never an empty answer, and the whole net change is there after the repair"({
    repository,
    edit,
    breakIt,
    repair,
  }) {
    edit("a.md", "1");
    const before = await seen(repository);
    breakIt();
    edit("a.md", "2");
    edit("b.md", "3");
    assert.is(await codeOf(repository.look()), "memory_unreadable");
    assert.is(await codeOf(repository.persona()), "memory_unreadable");
    repair();
    assert.equal(told(netChange(before, [], await seen(repository))), ["modified a.md", "added b.md"]);
  },

  async "I7: an unchanged look gives the same state; made and reverted too"({ repository, edit, remove }) {
    edit("a.md", "1");
    const before = await seen(repository);
    assert.equal(await seen(repository), before);
    edit("a.md", "2");
    edit("b.md", "2");
    assert.is.not((await seen(repository)).state, before.state);
    edit("a.md", "1");
    remove("b.md");
    assert.equal(await seen(repository), before);
  },

  async "I7: added, modified, deleted, renamed and mode are told apart"({ repository, edit, remove, rename, chmod }) {
    for (const path of ["changed.md", "gone.md", "old name.md", "script.sh"]) edit(path, `this is ${path}`);
    const before = await seen(repository);
    edit("changed.md", "other");
    remove("gone.md");
    rename("old name.md", "notes/new name.md");
    chmod("script.sh", true);
    edit("日本/😀.md", "new");
    const after = await seen(repository);
    assert.equal(told(netChange(before, [], after)), [
      "modified changed.md",
      "deleted gone.md",
      "renamed notes/new name.md < old name.md",
      "mode script.sh",
      "added 日本/😀.md",
    ]);
  },

  async "I7: a branch is told, a moved HEAD alone is not"({ repository, edit, commit, switchTo }) {
    edit("a.md", "1");
    const unborn = await seen(repository);
    commit("first");
    const first = await seen(repository);
    assert.is.not(first.head, null);
    assert.is(netChange(unborn, [], first), null);
    switchTo("HEAD");
    const named = await seen(repository);
    assert.is(named.branch, "HEAD");
    switchTo(null);
    const detached = await seen(repository);
    assert.is(detached.branch, null);
    assert.equal(told(netChange(named, [], detached)), ["branch HEAD > null"]);
    assert.equal(detached.head, first.head);
  },

  async "I7: what the session wrote is nobody's news; a person's edit of the same minute is"({ repository, edit }) {
    edit("a.md", "1");
    const before = await seen(repository);
    let wrote: Wrote[] = [];
    for (const [path, text] of [
      ["/memory/a.md", "bot"],
      ["./new/b.md", "bot too"],
    ] as const) {
      const blob = await repository.blobOf(path, Buffer.from(text));
      await repository.files.write(path, Buffer.from(text));
      assert.is(await repository.blobNow(path), blob);
      wrote = mergeWrote(wrote, [{ path, blobs: [blob] }]);
    }
    assert.is(netChange(before, wrote, await seen(repository)), null);
    edit("new/b.md", "a person");
    edit("c.md", "a person");
    assert.equal(told(netChange(before, wrote, await seen(repository))), ["added c.md", "added new/b.md"]);
  },

  async "the blob ids of a file, of its bytes and of the manifest are one"({ repository, edit }) {
    edit("a.md", "line\n");
    const blob = await repository.blobNow("a.md");
    assert.is(blob, await repository.blobOf("a.md", Buffer.from("line\n")));
    assert.equal((await seen(repository)).manifest, [{ path: "a.md", mode: "100644", blob }]);
    assert.is(await repository.blobNow("none.md"), null);
    assert.is(await repository.blobNow("no/such.md"), null);
  },

  async "files are read, written and listed in order of their whole path"({ repository }) {
    const { files } = repository;
    const texts: Record<string, string> = { "a.md": "1", "a/b.md": "2", "a-b.md": "3", "a/b/c.md": "4", "é.md": "5" };
    for (const [path, text] of Object.entries(texts)) await files.write(path, Buffer.from(text));
    for (const [path, text] of Object.entries(texts)) assert.is(Buffer.from(await files.read(`/memory/${path}`)).toString(), text);
    const sorted = ["a-b.md", "a.md", "a/b.md", "a/b/c.md", "é.md"];
    assert.equal(await files.list("", 10), { paths: sorted, more: false });
    assert.equal(await files.list("/memory", 4), { paths: sorted.slice(0, 4), more: true });
    assert.equal(await files.list("a/", 2), { paths: ["a/b.md", "a/b/c.md"], more: false });
  },

  async "writing again replaces the bytes and keeps the mode"({ repository, edit, chmod }) {
    edit("run.sh", "1");
    chmod("run.sh", true);
    await repository.files.write("run.sh", Buffer.from("2"));
    const [entry] = (await seen(repository)).manifest;
    assert.is(entry?.mode, "100755");
    assert.is(Buffer.from(await repository.files.read("run.sh")).toString(), "2");
  },

  async "the jail refuses what leaves the repository, and git's folder by any name"({ repository, edit }) {
    edit("file.md", "1");
    const refused = [
      "../x",
      "a/../../x",
      "/etc/passwd",
      "/memory/../x",
      "/memoryx",
      ".git/config",
      ".GIT/config",
      "sub/.Git/hooks/x",
      "git~1/config",
      ".git./x",
      ".git::$INDEX_ALLOCATION/x",
      "a\0b",
      "a\ud800b",
      "a\\b",
    ];
    for (const path of refused) {
      assert.is(await codeOf(repository.files.read(path)), "invalid_input", path);
      assert.is(await codeOf(repository.files.write(path, Buffer.from("x"))), "invalid_input", path);
      assert.is(await codeOf(repository.files.list(path, 1)), "invalid_input", path);
      assert.is(await codeOf(repository.blobNow(path)), "invalid_input", path);
    }
    for (const path of ["", "/memory", "file.md/below", "."])
      assert.is(await codeOf(repository.files.write(path, Buffer.from("x"))), "invalid_input", path);
    for (const path of ["none", "file.md/below", ""]) assert.is(await codeOf(repository.files.read(path)), "invalid_input", path);
    assert.is(await codeOf(repository.files.list("no-folder", 1)), "invalid_input");
    assert.equal(await repository.files.list("", 9), { paths: ["file.md"], more: false });
  },

  async "a file over the limit is refused, to read and to write, and nothing is left of it"({ repository, edit }) {
    const whole = Buffer.alloc(limits.toolFileBytesMax, "x");
    await repository.files.write("whole", whole);
    assert.is((await repository.files.read("whole")).byteLength, whole.length);
    edit("large", Buffer.concat([whole, whole]));
    assert.is(await codeOf(repository.files.read("large")), "invalid_input");
    assert.is(await codeOf(repository.files.write("other", Buffer.concat([whole, whole]))), "invalid_input");
    assert.equal(await repository.files.list("", 9), { paths: ["large", "whole"], more: false });
  },

  async "looks at the same time agree, and one that is asked for after an edit sees it"({ repository, edit }) {
    edit("a.md", "1");
    const running = repository.look();
    edit("a.md", "2");
    const [, ...later] = await Promise.all([running, repository.look(), repository.look()]);
    const blob = await repository.blobOf("a.md", Buffer.from("2"));
    for (const look of later) assert.is(look.state === "ready" && look.seen.manifest[0]?.blob, blob);
  },
};

/** Runs every case on a world of its own. */
export function memoryRepositorySuite(name: string, make: () => MemoryWorld): void {
  const test = suite(`memory repository: ${name}`);
  for (const [title, run] of Object.entries(cases)) {
    test(title, async () => {
      const world = make();
      try {
        await run(world);
      } finally {
        world.dispose();
      }
    });
  }
  test.run();
}
