/** Style is a test: the rules of CONTRIBUTING.md that a machine can hold. Each rule is tried on planted text first. */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { limits } from "../../src/domain/limits.ts";
import { assert, suite } from "../support/suite.ts";
import { type Finding, importsOf, isSource, repositoryFiles, type TextFile, withoutComments } from "../support/tidy/files.ts";
import { entryPoints, findCycles, findDeadFiles, findRoomFaults, rooms } from "../support/tidy/rooms.ts";
import * as words from "../support/tidy/words.ts";

const test = suite("tidy");
const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const all = repositoryFiles(root);
const sources = all.filter(({ path }) => isSource(path));
const packageJson = readFileSync(join(root, "package.json"), "utf8");
const codes = words.closedSet(readFileSync(join(root, "src/domain/errors.ts"), "utf8"));

function planted(path: string, text: string): TextFile[] {
  return [{ path, text }];
}

/** `path:line message`, as an editor finds it. */
function told(findings: readonly Finding[]): string[] {
  return findings.map(({ path, line, message }) => `${path}:${line} ${message}`);
}

function finds(findings: readonly Finding[], ...expected: readonly (string | RegExp)[]): void {
  const lines = told(findings);
  assert.is(lines.length, expected.length, lines.join("\n") || "found nothing");
  for (const [i, part] of expected.entries()) assert.match(lines[i] as string, part);
}

function none(findings: readonly Finding[]): void {
  if (findings.length === 0) return;
  const error = new Error(["", ...told(findings)].join("\n    "));
  error.stack = "";
  throw error;
}

// ── the checker itself ───────────────────────────────────────────────────────────────────────────

test("reads every form of import, with its line, and none in a comment", () => {
  const text = [
    'import { a } from "./a.ts";',
    "import type {",
    "  B,",
    '} from "../store/b.ts";',
    'export * from "./c.ts";',
    '// import { no } from "./no.ts";',
    'import "node:fs";',
    'const d = await import("mongodb");',
    'new Worker(new URL("./e.ts", import.meta.url));',
  ].join("\n");
  const found = importsOf({ path: "src/queues/x.ts", text }).map(({ target, line }) => `${line} ${target}`);
  assert.equal(found.sort(), ["1 src/queues/a.ts", "2 src/store/b.ts", "5 src/queues/c.ts", "7 node:fs", "8 mongodb", "9 src/queues/e.ts"]);
});

test("blanks comments and keeps lines and strings", () => {
  assert.is(
    withoutComments('/** one\n two */\nconst url = "redis://x"; // three'),
    `${" ".repeat(7)}\n${" ".repeat(7)}\nconst url = "redis://x";${" ".repeat(9)}`,
  );
});

test("rooms: an adapter that imports another, a driver outside its room, a stranger and a homeless file are found", () => {
  finds(
    findRoomFaults(planted("src/queues/x.ts", '\nimport { a } from "../store/a.ts";')),
    /^src\/queues\/x\.ts:2 imports src\/store\/a\.ts: src\/queues may import src\/domain; hand it in through a port/,
  );
  finds(
    findRoomFaults(planted("src/actors/x.ts", 'import { Redis } from "ioredis";')),
    /package ioredis, which src\/actors may not: only .*src\/queues.* may; use a port/,
  );
  finds(
    findRoomFaults(planted("src/domain/x.ts", 'import { readFile } from "node:fs/promises";')),
    /package node:fs\/promises, which src\/domain may not/,
  );
  finds(findRoomFaults(planted("src/host/x.ts", 'import x from "left-pad";')), /package left-pad, .* enter it in the table/);
  finds(
    findRoomFaults(planted("src/host/x.ts", 'import { start } from "../main.ts";')),
    /imports src\/main\.ts: src\/host may import src\/domain/,
  );
  finds(
    findRoomFaults(planted("demo/x.ts", 'import { limits } from "../src/domain/limits.ts";')),
    /imports src\/domain\/limits\.ts: demo may import src\/index\.ts/,
  );
  finds(findRoomFaults(planted("src/loose.ts", "")), /lies in no room/);
});

test("rooms: what the table allows is let through", () => {
  const text =
    'import { Queue } from "bullmq";\nimport { z } from "zod";\nimport { a } from "./a.ts";\nimport { id } from "../domain/ids.ts";\nimport { once } from "node:events";';
  none(findRoomFaults(planted("src/queues/x.ts", text)));
  none(findRoomFaults(planted("src/domain/x.ts", 'import assert from "node:assert/strict";')));
  none(findRoomFaults(planted("src/cli/x.ts", 'import { connect } from "../main.ts";')));
});

test("cycles: each is told once, with the way round", () => {
  const files = [
    { path: "src/domain/a.ts", text: 'import { b } from "./b.ts";' },
    { path: "src/domain/b.ts", text: 'import type { c } from "./c.ts";' },
    { path: "src/domain/c.ts", text: 'import { a } from "./a.ts";' },
    { path: "src/domain/d.ts", text: 'import { a } from "./a.ts";' },
  ];
  finds(findCycles(files), "src/domain/a.ts:1 import cycle: src/domain/a.ts → src/domain/b.ts → src/domain/c.ts → src/domain/a.ts");
  none(findCycles(files.slice(1)));
});

test("dead files: what no entry point reaches, and an entry point that is missing, are found", () => {
  const json = JSON.stringify({ exports: { ".": { default: "./dist/index.js" } }, bin: { x: "dist/cli/x.js" } });
  assert.equal(entryPoints(json), ["src/index.ts", "src/cli/x.ts"]);
  const files = [
    { path: "src/index.ts", text: 'export { a } from "./domain/a.ts";' },
    { path: "src/domain/a.ts", text: "" },
    { path: "src/domain/dead.ts", text: 'import { a } from "./a.ts";' },
  ];
  finds(findDeadFiles(files, json), "entry point src/cli/x.ts, which does not exist");
  finds(findDeadFiles([...files, { path: "src/cli/x.ts", text: "" }], json), /^src\/domain\/dead\.ts:1 is reached from no entry point/);
});

test("clocks: each raw call is found with its replacement, but not in a comment or in src/system.ts", () => {
  const raw: [string, string][] = [
    ["Date.now()", "system.now()"],
    ["new Date()", "system.now()"],
    ["performance.now()", "system.monotonic()"],
    ["setTimeout(f, 1)", "system.sleep(ms, signal)"],
    ["setInterval(f, 1)", "system.sleep(ms, signal)"],
    ["AbortSignal.timeout(1)", "system.sleep(ms, signal)"],
    ['import "node:timers/promises"', "system.sleep(ms, signal)"],
    ["Math.random()", "system.random()"],
    ["randomUUID()", "system.id()"],
  ];
  for (const [call, instead] of raw) {
    finds(
      words.findClocks(planted("src/actors/x.ts", `// first\n${call};`)),
      `src/actors/x.ts:2 ${/^import/.test(call) ? '"node:timers/promises"' : ""}`,
    );
    assert.match(told(words.findClocks(planted("src/actors/x.ts", call)))[0] as string, instead);
    none(words.findClocks(planted("src/system.ts", call)));
    none(words.findClocks(planted("src/actors/x.ts", `// not ${call}\n/** nor ${call} */`)));
  }
  none(words.findClocks(planted("src/store/x.ts", "new Date(system.now())")));
});

test("idle tests: a file that runs nothing, a part of a suite, and uvu without a timeout are found", () => {
  finds(
    words.findIdleTests(planted("test/unit/x.test.ts", 'test("a", () => {});\n')),
    "test/unit/x.test.ts:1 runs nothing: end it with test.run();",
  );
  finds(words.findIdleTests(planted("test/unit/x.test.ts", "// test.run();\n")), "runs nothing");
  finds(
    words.findIdleTests(planted("test/unit/x.test.ts", `test.${"only"}("a");\ntest.${"skip"}("b");\ntest.run();`)),
    /:1 test\.only/,
    /:2 test\.skip/,
  );
  finds(words.findIdleTests(planted("test/unit/x.test.ts", `import { suite } from ${'"uvu"'};\ntest.run();`)), "uvu has no timeout");
  none(words.findIdleTests(planted("test/unit/x.test.ts", "test.run();\n")));
  const conformance = planted("test/conformance/x.test.ts", 'import { xSuite } from "./x-suite.ts";\nxSuite();\n');
  none(words.findIdleTests([...conformance, ...planted("test/conformance/x-suite.ts", "  test.run();\n")]));
  finds(words.findIdleTests([...conformance, ...planted("test/conformance/x-suite.ts", "")]), "runs nothing");
});

test("words: leftovers, places of this machine and vague folders are found", () => {
  for (const word of ["FIX", "TO"])
    finds(words.findLeftovers(planted("docs/x.md", `\n${word}${word === "TO" ? "DO" : "ME"}: later`)), /^docs\/x\.md:2 .* is left over/);
  for (const place of ["work", "root"]) finds(words.findMachinePaths(planted("x.yml", `volume: /${place}/main`)), /place of one machine/);
  none(words.findMachinePaths(planted("x.md", "docs/work/ and ./root/ and https://example.org/work/")));
  for (const folder of ["common", "util", "utils", "types", "helpers"])
    finds(words.findVagueFolders(planted(`src/${folder}/x.ts`, "")), "after what it owns");
  none(words.findVagueFolders(planted("src/store/types.ts", "")));
});

test("sizes: a file of src one line too long is found", () => {
  finds(words.findLongFiles(planted("src/x.ts", "a\n".repeat(words.linesMax + 1))), `has ${words.linesMax + 1} lines`);
  none(words.findLongFiles(planted("src/x.ts", "a\n".repeat(words.linesMax))));
});

test("codes: one that is not in the closed set is found where it is thrown, asked for or promised", () => {
  const known = new Set(["closed"]);
  for (const text of ['new HeadfastError("clozed", "x")', 'isHeadfastError(error, "closed", "clozed")', "/** @throws `clozed` if so */"]) {
    finds(words.findUnknownCodes(planted("src/x.ts", text), known), "the error code clozed is not in the closed set");
  }
  none(words.findUnknownCodes(planted("src/x.ts", 'new HeadfastError("closed", "x")'), known));
  assert.ok(codes.has("prefix_drift") && codes.size > 20, "the closed set was not found in src/domain/errors.ts");
});

test("unused: a code and a limit that nothing in src uses are found", () => {
  finds(
    words.findUnusedCodes(planted("src/x.ts", 'throw new HeadfastError("a", "");'), new Set(["a", "b"])),
    "the error code b is used nowhere",
  );
  finds(words.findUnusedLimits(planted("src/x.ts", "if (n > limits.aMax) {}"), ["aMax", "bMax"]), "limits.bMax limits nothing");
});

// ── the repository ───────────────────────────────────────────────────────────────────────────────

test("there is something to look at", () => {
  assert.ok(sources.length > 50 && sources.some(({ path }) => path === "src/system.ts"));
});

test("no import goes against the table of rooms", () => none(findRoomFaults(sources)));
test("CONTRIBUTING.md's table names every room", () => {
  const table = readFileSync(join(root, "CONTRIBUTING.md"), "utf8");
  for (const room of Object.keys(rooms)) assert.match(table, new RegExp(`^\\| \`${room}/?\` \\|`, "m"), `no row for ${room}`);
});
test("there is no import cycle", () => none(findCycles(sources)));
test("every file of src is reached from an entry point that exists", () => none(findDeadFiles(sources, packageJson)));
test("time and chance come in through src/system.ts alone", () => none(words.findClocks(sources)));
test("every test file runs, and runs whole", () => none(words.findIdleTests(sources)));
test("nothing is left over", () => none(words.findLeftovers(all)));
test("no folder has a vague name", () => none(words.findVagueFolders(all)));
test("no text names a place of one machine", () => none(words.findMachinePaths(all)));
test("no file of src is too long", () => none(words.findLongFiles(sources)));
test("every error code is of the closed set", () => none(words.findUnknownCodes(sources, codes)));
test("every error code is used", () => none(words.findUnusedCodes(sources, codes)));
test("every limit limits something", () => none(words.findUnusedLimits(sources, Object.keys(limits))));

test.run();
