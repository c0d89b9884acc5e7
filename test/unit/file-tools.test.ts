/** The file tools, over a small memory of the test's own and over the real jailed files of a folder. */
import { mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HeadfastError } from "../../src/domain/errors.ts";
import { limits } from "../../src/domain/limits.ts";
import { memoryPath } from "../../src/domain/memory-path.ts";
import type { MemoryFiles, ToolContext, ToolMemory } from "../../src/domain/ports.ts";
import { jailedFiles } from "../../src/memory/jail.ts";
import { realSystem } from "../../src/system.ts";
import { fileTools } from "../../src/tools/files.ts";
import { assert, suite } from "../support/suite.ts";

type Files = Record<string, string | Uint8Array>;

interface World {
  memory: ToolMemory;
  text(path: string): Promise<string>;
  /** Runs a tool; the answer, or `error: ` and the message of an error result. */
  run(tool: string, args: unknown, context?: Partial<ToolContext>): Promise<string>;
}

const tools = new Map(fileTools().map((tool) => [tool.name, tool]));

function worldOf(files: MemoryFiles): World {
  const memory: ToolMemory = { files, write: (path, bytes) => files.write(path, bytes) };
  return {
    memory,
    text: async (path) => Buffer.from(await files.read(path)).toString("utf8"),
    async run(name, args, context = {}) {
      const whole: ToolContext = {
        signal: new AbortController().signal,
        callId: "c",
        session: "s",
        turnId: "t",
        bot: "b",
        memory,
        ...context,
      };
      try {
        return (await tools.get(name)?.run(args, whole)) ?? assert.unreachable(`no tool ${name}`) ?? "";
      } catch (error) {
        if (error instanceof HeadfastError) return `error: ${error.message}`;
        throw error;
      }
    },
  };
}

/** The `MemoryFiles` port in a map. */
function filesInMap(): MemoryFiles {
  const all = new Map<string, Uint8Array>();
  const refuse = (path: string, reason: string) =>
    new HeadfastError("invalid_input", `the path ${JSON.stringify(path)} is refused: ${reason}`);
  return {
    async read(path) {
      const bytes = all.get(memoryPath(path)) ?? [];
      if (bytes instanceof Uint8Array) return bytes;
      throw refuse(path, "there is no such file");
    },
    async write(path, bytes) {
      all.set(memoryPath(path), bytes);
    },
    async list(folder, limit) {
      const below = memoryPath(folder) === "" ? "" : `${memoryPath(folder)}/`;
      const paths = [...all.keys()].filter((path) => path.startsWith(below)).sort();
      if (paths.length === 0 && below !== "") throw refuse(folder, "there is no such folder");
      return { paths: paths.slice(0, limit), more: paths.length > limit };
    },
  };
}

async function fill(world: World, files: Files): Promise<World> {
  for (const [path, content] of Object.entries(files))
    await world.memory.write(path, typeof content === "string" ? Buffer.from(content) : content);
  return world;
}

function fileToolsSuite(name: string, root: () => Promise<MemoryFiles>, leave: () => Promise<void>): void {
  const test = suite(`file tools: ${name}`);
  const world = async (files: Files): Promise<World> => fill(worldOf(await root()), files);
  test.after.each(leave);

  test("read gives a file byte for byte, by any spelling of its path", async () => {
    const { run } = await world({ "a/notes.md": "one\r\n\ttwo\n\n" });
    for (const path of ["/memory/a/notes.md", "a/notes.md", "./a//notes.md"]) assert.is(await run("read", { path }), "one\r\n\ttwo\n\n");
  });

  test("read gives a range of lines and says where to go on", async () => {
    const { run } = await world({ "n.md": Array.from({ length: 5000 }, (_, i) => `line ${i + 1}\n`).join("") });
    assert.is(await run("read", { path: "n.md", offset: 2, limit: 2 }), "line 2\nline 3\n[lines 2 to 3 of 5000; go on with offset 4]");
    assert.match(await run("read", { path: "n.md" }), /\nline 2000\n\[lines 1 to 2000 of 5000; go on with offset 2001\]$/);
    assert.is(await run("read", { path: "n.md", offset: 5000 }), "line 5000\n[lines 5000 to 5000 of 5000]");
    assert.match(await run("read", { path: "n.md", offset: 5001 }), /^error: .*has 5000 lines/);
  });

  test("read stays within its bytes, with long lines and with one endless line", async () => {
    const { run } = await world({ "long.md": `${"日".repeat(5000)}\n`.repeat(20), "endless.md": "😀".repeat(100_000) });
    const long = await run("read", { path: "long.md" });
    assert.ok(Buffer.byteLength(long) <= limits.toolResultBytesMax);
    assert.match(long, /日\n\[lines 1 to 4 of 20; go on with offset 5\]$/);
    const endless = await run("read", { path: "endless.md" });
    assert.ok(Buffer.byteLength(endless) <= limits.toolResultBytesMax && endless.isWellFormed());
    assert.match(
      endless,
      /\[cut: \d+ of 400000 bytes are left out\]\n\[lines 1 to 1 of 1; line 1 is too long to be read whole, grep can search it\]$/,
    );
    assert.not.match(long, "too long");
  });

  test("read tells an empty file, a binary one, and one that is no UTF-8", async () => {
    const { run } = await world({ "empty.md": "", "nul.bin": Uint8Array.of(65, 0, 66), "latin.txt": Uint8Array.of(0xe4, 0x62) });
    assert.is(await run("read", { path: "empty.md" }), "[/memory/empty.md is empty]");
    assert.is(await run("read", { path: "nul.bin" }), "[/memory/nul.bin is not text: 3 bytes]");
    assert.is(await run("read", { path: "latin.txt" }), "[/memory/latin.txt is not text: 2 bytes]");
  });

  test("what is missing, outside or git's own is an error result of every tool that takes a path", async () => {
    const { run } = await world({ "a.md": "a" });
    for (const path of ["gone.md", "../a.md", "/etc/passwd", ".git/config"]) {
      assert.match(await run("read", { path }), /^error: .*refused/);
      assert.match(await run("edit", { path, old_text: "a", new_text: "b" }), /^error: .*refused/);
      assert.match(await run("grep", { path, pattern: "a" }), /^error: .*refused/);
      if (path !== "gone.md") assert.match(await run("write", { path, content: "x" }), /^error: .*refused/);
    }
  });

  test("grep finds plain text, in the whole memory, a folder or a file", async () => {
    const { run } = await world({ "a.md": "tea (green)\nTEA\n", "b/c.md": "no\r\nmore tea (green)\r\n", "b/d.bin": Uint8Array.of(0) });
    const skipped = "[1 files were not searched: no text, or larger than 1048576 bytes]";
    assert.is(await run("grep", { pattern: "tea (green)" }), `/memory/a.md:1: tea (green)\n/memory/b/c.md:2: more tea (green)\n${skipped}`);
    assert.is(
      await run("grep", { pattern: "tea", ignore_case: true, path: "/memory/a.md" }),
      "/memory/a.md:1: tea (green)\n/memory/a.md:2: TEA",
    );
    assert.is(await run("grep", { pattern: "tea", path: "b" }), `/memory/b/c.md:2: more tea (green)\n${skipped}`);
    assert.is(await run("grep", { pattern: "coffee", path: "a.md" }), "No matches.");
  });

  test("grep takes a regular expression, and says what is wrong with a broken one", async () => {
    const { run } = await world({ "a.md": "cat 12\ndog\nCAT x\n" });
    assert.is(await run("grep", { pattern: "^cat \\d+|dog$", regex: true }), "/memory/a.md:1: cat 12\n/memory/a.md:2: dog");
    assert.is(await run("grep", { pattern: "^cat", regex: true, ignore_case: true }), "/memory/a.md:1: cat 12\n/memory/a.md:3: CAT x");
    assert.match(await run("grep", { pattern: "(", regex: true }), /^error: the pattern is not a regular expression/);
    assert.match(await run("grep", { pattern: "x".repeat(limits.toolPatternBytesMax + 1) }), /^error: the pattern is longer/);
  });

  test("grep cuts long lines and counts what does not fit", async () => {
    const { run } = await world({ "a.md": `x${"日".repeat(1000)}\n`, "b.md": "x\n".repeat(3000) });
    const found = await run("grep", { pattern: "x" });
    const lines = found.split("\n");
    assert.ok(lines[0]?.endsWith("日…") && Buffer.byteLength(lines[0]) < 600);
    assert.match(
      found,
      /\n\[1001 more matches: narrow the pattern, or name a folder or file in path\]\n\[lines that end with … are cut at 500 bytes: read gives a line whole, with its number as offset\]$/,
    );
    assert.not.match(await run("grep", { pattern: "x", path: "b.md" }), "…");
  });

  test("glob lists by pattern, hidden files too, and a name matches in every folder", async () => {
    const { run } = await world({ "a.md": "", "b/c.md": "", "b/.d.md": "", "b/e/f.txt": "", "g [1].md": "" });
    const all = "/memory/a.md\n/memory/b/.d.md\n/memory/b/c.md\n/memory/b/e/f.txt\n/memory/g [1].md";
    const cases: [string, string][] = [
      ["**", all],
      ["/memory", all],
      ["/memory/**", all],
      ["*.md", "/memory/a.md\n/memory/b/.d.md\n/memory/b/c.md\n/memory/g [1].md"],
      ["/memory/*.md", "/memory/a.md\n/memory/g [1].md"],
      ["b/**/*.{txt,md}", "/memory/b/.d.md\n/memory/b/c.md\n/memory/b/e/f.txt"],
      ["?.md", "/memory/a.md\n/memory/b/c.md"],
      ["*.png", "No files match."],
    ];
    for (const [pattern, expected] of cases) assert.is(await run("glob", { pattern }), expected, pattern);
    assert.match(await run("glob", { pattern: "*".repeat(limits.toolPatternBytesMax + 1) }), /^error: the pattern is longer/);
  });

  test("write makes a file of exactly that text, well-formed, within the limit", async () => {
    const { run, text } = await world({});
    assert.is(await run("write", { path: "/memory/new/a.md", content: "é\ud800\n" }), "Wrote /memory/new/a.md (6 bytes).");
    assert.is(await text("new/a.md"), "é\ufffd\n");
    assert.match(
      await run("write", { path: "b.md", content: "x".repeat(limits.toolFileBytesMax + 1) }),
      /^error: the file would have 1048577 bytes/,
    );
    assert.match(await run("read", { path: "b.md" }), /^error: .*no such file/);
  });

  test("edit replaces a text that stands there once, to the character", async () => {
    const { run, text } = await world({ "a.md": "one two two $& three" });
    assert.is(await run("edit", { path: "a.md", old_text: "one", new_text: "$& 1 $1" }), "Edited /memory/a.md.");
    assert.is(await text("a.md"), "$& 1 $1 two two $& three");
    assert.match(await run("edit", { path: "a.md", old_text: "two", new_text: "2" }), /^error: old_text stands there 2 times/);
    await run("edit", { path: "a.md", old_text: "two", new_text: "", replace_all: true });
    assert.is(await text("a.md"), "$& 1 $1   $& three");
    assert.match(await run("edit", { path: "a.md", old_text: "four", new_text: "4" }), /^error: old_text was not found; read/);
    assert.match(await run("edit", { path: "a.md", old_text: "three", new_text: "three" }), /^error: .*are the same/);
    assert.match(await run("edit", { path: "a.md", old_text: "", new_text: "x" }), /^error: edit: the arguments do not fit/);
  });

  test("edit keeps line ends and a byte-order mark, says where line ends differ, and refuses what is no text or too large", async () => {
    const { run, text } = await world({ "crlf.md": "\ufeffa\r\nb\r\n", bin: Uint8Array.of(0), "big.md": "a".repeat(1000) });
    assert.match(await run("edit", { path: "crlf.md", old_text: "a\nb", new_text: "x" }), /lines end with \\r\\n/);
    await run("edit", { path: "crlf.md", old_text: "b", new_text: "c" });
    assert.is(await text("crlf.md"), "\ufeffa\r\nc\r\n");
    assert.match(await run("edit", { path: "bin", old_text: "a", new_text: "b" }), /^error: \/memory\/bin is not text/);
    assert.match(
      await run("edit", { path: "big.md", old_text: "a", new_text: "b".repeat(2000), replace_all: true }),
      /^error: the file would have 2000000 bytes/,
    );
  });

  test("rule 10: an edit that a crash interrupted after its write is not tried on its own result", async () => {
    const { run, memory, text } = await world({ "a.md": "new" });
    const resumed: ToolMemory = { ...memory, resumed: async (path) => path === "a.md" };
    assert.is(await run("edit", { path: "/memory/a.md", old_text: "old", new_text: "new" }, { memory: resumed }), "Edited /memory/a.md.");
    assert.match(
      await run("edit", { path: "a.md", old_text: "old", new_text: "new" }, { memory: { ...memory, resumed: async () => false } }),
      /not found/,
    );
    assert.is(await text("a.md"), "new");
  });

  test("a name with control characters makes no line of its own, and can be read as it is shown", async () => {
    const { run } = await world({ "a\n[forged].md": "text" });
    const shown = await run("glob", { pattern: "**" });
    assert.is(shown, "/memory/a\\x0a[forged].md");
    assert.is(await run("read", { path: shown }), "text");
  });

  test("a bot without a memory hears so, and a memory that cannot be read is no error result", async () => {
    const { run, memory } = await world({ "a.md": "a" });
    const { memory: _, ...without } = { memory, signal: new AbortController().signal, callId: "c", session: "s", turnId: "t", bot: "b" };
    for (const [name, args] of [
      ["read", { path: "a.md" }],
      ["grep", { pattern: "a" }],
      ["glob", { pattern: "a" }],
      ["write", { path: "a", content: "" }],
      ["edit", { path: "a", old_text: "a", new_text: "b" }],
    ] as const) {
      const error = await tools
        .get(name)
        ?.run(args, without)
        .catch((thrown) => thrown);
      assert.match(error.message, /no Memory Repository/, name);
    }
    const broken = { ...memory.files, read: async () => Promise.reject(new HeadfastError("memory_unreadable", "disk")) };
    assert.is(await run("grep", { pattern: "a" }, { memory: { ...memory, files: broken } }), "error: disk");
  });

  test.run();
}

fileToolsSuite(
  "a map",
  async () => filesInMap(),
  async () => {},
);

let folder: string | undefined;
const folderFiles = async (): Promise<MemoryFiles> => {
  folder = await mkdtemp(join(tmpdir(), "headfast-file-tools-"));
  const root = folder;
  return jailedFiles(async () => root, realSystem);
};
const removeFolder = async (): Promise<void> => {
  if (folder !== undefined) await rm(folder, { recursive: true });
  folder = undefined;
};
fileToolsSuite("a real folder", folderFiles, removeFolder);

const patterns = suite("file tools: patterns");
patterns("a pattern of exponential time ends in time and leaves the process free; an abort ends it at once", async () => {
  const { run } = await fill(worldOf(filesInMap()), { "a.md": `${"a".repeat(60)}b\n`, [`${"a".repeat(120)}.md`]: "" });
  let ticks = 0;
  const ticking = setInterval(() => {
    ticks += 1;
  }, 20);
  assert.match(await run("grep", { pattern: "^(a+)+$", regex: true }), /^error: the pattern took longer/);
  assert.match(await run("glob", { pattern: `${"*a".repeat(30)}*c` }), /^error: the pattern took longer/);
  clearInterval(ticking);
  assert.ok(ticks > 20, `${ticks} ticks`);
  const stop = new AbortController();
  const search = run("grep", { pattern: "^(a+)+$", regex: true }, { signal: stop.signal });
  const reason = new Error("stop");
  setImmediate(() => stop.abort(reason));
  await search.then(
    () => assert.unreachable("was not aborted"),
    (error) => assert.is(error, reason),
  );
});
patterns("glob counts what does not fit, and says how to get at it", async () => {
  const files = Object.fromEntries(Array.from({ length: limits.toolLinesMax + 3 }, (_, i) => [`${i}.md`, ""]));
  const { run } = await fill(worldOf(filesInMap()), files);
  assert.match(await run("glob", { pattern: "*.md" }), /\.md\n\[3 more files: name a folder in the pattern\]$/);
});
patterns.run();

const real = suite("file tools: a folder with a symlink");
real.after.each(removeFolder);
real("no tool follows a symlink out of the memory", async () => {
  const { run } = worldOf(await folderFiles());
  await symlink("/etc", join(folder ?? "", "out"));
  await symlink("/etc/passwd", join(folder ?? "", "passwd"));
  for (const path of ["out/passwd", "passwd"]) {
    assert.match(await run("read", { path }), /^error: .*symlink/);
    assert.match(await run("write", { path, content: "x" }), /^error: .*symlink/);
  }
  assert.is(await run("grep", { pattern: "root" }), "No matches.");
  assert.is(await run("glob", { pattern: "**" }), "No files match.");
});
real.run();
