/** Rules on what stands in the text: clocks, tests that cannot run, leftovers, places of one machine, sizes and error codes. */
import { type Finding, findAll, importsOf, lineAt, type TextFile, withoutComments } from "./files.ts";

const clocks: readonly { pattern: RegExp; instead: string }[] = [
  { pattern: /\bDate\.now\b|\bnew Date\(\)|(?<!new )\bDate\(\)/g, instead: "system.now()" },
  { pattern: /\bperformance\.now\b|\bprocess\.hrtime\b/g, instead: "system.monotonic()" },
  {
    pattern: /\bsetTimeout\b|\bsetInterval\b|\bAbortSignal\.timeout\b|["']node:timers(\/promises)?["']/g,
    instead: "system.sleep(ms, signal)",
  },
  { pattern: /\bMath\.random\b|\brandomInt\b/g, instead: "system.random()" },
  { pattern: /\brandomUUID\b|\brandomBytes\b|\bgetRandomValues\b/g, instead: "system.id()" },
];

/** Time and chance outside src/system.ts, in src. */
export function findClocks(files: readonly TextFile[]): Finding[] {
  const others = files.filter(({ path }) => path.startsWith("src/") && path !== "src/system.ts");
  return others.flatMap(({ path, text }) => {
    const code = withoutComments(text);
    return clocks.flatMap(({ pattern, instead }) => findAll(path, code, pattern, (match) => `${match}: use ${instead} of the System port`));
  });
}

/** Test files that do not run, or not all of their tests. Those of a conformance suite are run by the suite's own file. */
export function findIdleTests(files: readonly TextFile[]): Finding[] {
  const suites = new Set(files.filter(({ path, text }) => path.endsWith("-suite.ts") && runsATest.test(text)).map(({ path }) => path));
  return files
    .filter(({ path }) => path.endsWith(".test.ts"))
    .flatMap((file) => {
      const { path, text } = file;
      const runs = /^\w+\.run\(\);\s*$/m.test(text) || importsOf(file).some(({ target }) => suites.has(target));
      const missing = runs ? [] : [{ path, line: text.trimEnd().split("\n").length, message: "runs nothing: end it with test.run();" }];
      const code = withoutComments(text);
      const partial = findAll(
        path,
        code,
        /\b\w+\.(only|skip)\(/g,
        (match) => `${match}…): a test runs or does not exist; delete the word or the test`,
      );
      const bare = findAll(path, code, /from "uvu"/g, () => "uvu has no timeout: import suite and assert from test/support/suite.ts");
      return [...missing, ...partial, ...bare];
    });
}

const runsATest = /^\s*\w+\.run\(\);$/m;

// Written in two parts, so that these lines are not found themselves.
const leftover = new RegExp(`\\b(${["FIX" + "ME", "TO" + "DO", "XX" + "X"].join("|")})\\b`, "g");
const machinePath = new RegExp(`(?<![\\w.~-])/(${["wo" + "rk", "ro" + "ot"].join("|")})(?=/)`, "g");

export function findLeftovers(files: readonly TextFile[]): Finding[] {
  return files.flatMap(({ path, text }) =>
    findAll(path, text, leftover, (match) => `${match} is left over: do it now, or write down the limit in the docs`),
  );
}

export function findMachinePaths(files: readonly TextFile[]): Finding[] {
  return files.flatMap(({ path, text }) =>
    findAll(
      path,
      text,
      machinePath,
      (match) => `${match}/… is a place of one machine: name it from the repository's root, or use os.tmpdir()`,
    ),
  );
}

export function findVagueFolders(files: readonly TextFile[]): Finding[] {
  const vague = files.filter(({ path }) => /(^|\/)(common|utils?|types|helpers?)\//.test(path));
  return vague.map(({ path }) => ({ path, line: 1, message: "lies in a folder whose name says nothing: name it after what it owns" }));
}

/** A file of src that grows past this has more than one job. */
export const linesMax = 400;

export function findLongFiles(files: readonly TextFile[]): Finding[] {
  const sources = files.filter(({ path }) => path.startsWith("src/") && path.endsWith(".ts"));
  return sources.flatMap(({ path, text }) => {
    const lines = text.trimEnd().split("\n").length;
    return lines <= linesMax
      ? []
      : [{ path, line: linesMax + 1, message: `has ${lines} lines, the limit is ${linesMax}: give one of its jobs a file of its own` }];
  });
}

/** Codes that are thrown, asked for, or promised in a docstring, and that the closed set does not have. */
export function findUnknownCodes(files: readonly TextFile[], codes: ReadonlySet<string>): Finding[] {
  return files
    .filter(({ path }) => path.startsWith("src/") && path.endsWith(".ts"))
    .flatMap(({ path, text }) =>
      codesIn(text)
        .filter(({ code }) => !codes.has(code))
        .map(({ code, index }) => ({
          path,
          line: lineAt(text, index),
          message: `the error code ${code} is not in the closed set of src/domain/errors.ts: use one of it, or add it there`,
        })),
    );
}

const setBody = /const kinds = \{([\s\S]*?)\} as const/;

/** The closed set, read from its source. */
export function closedSet(errorsSource: string): Set<string> {
  const body = setBody.exec(errorsSource)?.[1] ?? "";
  return new Set([...body.matchAll(/^\s*(\w+): "(?:terminal|retry|later)"/gm)].map((match) => match[1] as string));
}

/** Codes of the set that nothing throws or asks for: an error that cannot happen is no part of the interface. */
export function findUnusedCodes(files: readonly TextFile[], codes: ReadonlySet<string>): Finding[] {
  const sources = files.filter(({ path }) => path.startsWith("src/")).map(({ text }) => withoutComments(text.replace(setBody, "")));
  const unused = [...codes].filter((code) => !sources.some((text) => text.includes(`"${code}"`)));
  return unused.map((code) => ({
    path: "src/domain/errors.ts",
    line: 1,
    message: `the error code ${code} is used nowhere in src: take it out`,
  }));
}

/** Limits that limit nothing. */
export function findUnusedLimits(files: readonly TextFile[], limits: readonly string[]): Finding[] {
  const sources = files
    .filter(({ path }) => path.startsWith("src/") && path !== "src/domain/limits.ts")
    .map(({ text }) => withoutComments(text));
  const unused = limits.filter((name) => !sources.some((text) => new RegExp(`\\blimits\\.${name}\\b`).test(text)));
  return unused.map((name) => ({
    path: "src/domain/limits.ts",
    line: 1,
    message: `limits.${name} limits nothing in src: enforce it or take it out`,
  }));
}

function codesIn(text: string): { code: string; index: number }[] {
  const thrown = [...text.matchAll(/\bnew HeadfastError\(\s*"([^"]+)"/g)];
  const asked = [...text.matchAll(/\bisHeadfastError\(([^()]*)\)/g)].flatMap((call) =>
    [...(call[1] as string).matchAll(/"([^"]+)"/g)].map((match) => ({ code: match[1] as string, index: call.index })),
  );
  const promised = [...text.matchAll(/@throws (?:\{\w+\} )?((?:`\w+`(?:,| or| and)? ?)+)/g)].flatMap((list) =>
    [...(list[1] as string).matchAll(/`(\w+)`/g)].map((match) => ({ code: match[1] as string, index: list.index })),
  );
  return [...thrown.map((match) => ({ code: match[1] as string, index: match.index })), ...asked, ...promised];
}
