/**
 * uvu with what it lacks: a timeout for each test and hook, and hooks whose failure fails the run (uvu itself swallows
 * what `before` and `after` throw and exits with 0). There is no `.only` and no `.skip`: a test runs or does not exist.
 */
import * as uvu from "uvu";

export * as assert from "uvu/assert";

export type TestFn = () => unknown;

export interface SuiteOptions {
  /** For each test and each hook, in milliseconds. */
  timeoutMs?: number;
}

export interface Hook {
  /** Once, around the whole suite. */
  (fn: TestFn): void;
  /** Around each test. */
  each(fn: TestFn): void;
}

export interface Suite {
  /** Adds a test; `options.timeoutMs` overrides the suite's. Names are unique within the suite. */
  (name: string, fn: TestFn, options?: SuiteOptions): void;
  before: Hook;
  after: Hook;
  /** Ends every test file: without it uvu runs nothing. */
  run(): void;
}

/** Generous: a slow machine passes, a hang is still reported by the name of its test. */
export const testTimeoutMsDefault = 30_000;

// The runner asks before it kills: what is named here was left open, or hangs. Such a listener keeps no process alive.
process.on("SIGUSR2", () => {
  console.error(`still open: ${process.getActiveResourcesInfo().join(", ") || "nothing"}`);
});

interface Hooks {
  before: TestFn[];
  after: TestFn[];
  beforeEach: TestFn[];
  afterEach: TestFn[];
}

/** A named group of tests that run one after the other. */
export function suite(name: string, options: SuiteOptions = {}): Suite {
  const timeoutMs = options.timeoutMs ?? testTimeoutMsDefault;
  const inner = uvu.suite(name);
  const hooks: Hooks = { before: [], after: [], beforeEach: [], afterEach: [] };
  const names = new Set<string>();
  let broken: Error | undefined;

  inner.before(async () => {
    broken = await failureOf(`before hook of "${name}"`, hooks.before, timeoutMs);
  });
  inner.after(async () => {
    const failure = await failureOf(`after hook of "${name}"`, hooks.after, timeoutMs);
    if (failure) failTheRun(failure);
  });

  const add = (testName: string, fn: TestFn, own: SuiteOptions = {}): void => {
    if (names.has(testName)) throw new Error(`two tests of the suite "${name}" are named "${testName}"`);
    names.add(testName);
    inner(testName, async () => {
      if (broken) throw broken;
      await runTest(testName, fn, hooks, own.timeoutMs ?? timeoutMs);
    });
  };
  return Object.assign(add, {
    before: hook(hooks.before, hooks.beforeEach),
    after: hook(hooks.after, hooks.afterEach),
    run: () => inner.run(),
  });
}

/** Settles as `fn` does, or rejects after `timeoutMs` with a message that names `what`. */
export async function withTimeout<T>(what: string, timeoutMs: number, fn: () => T | Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`timed out: ${what} did not settle within ${timeoutMs} ms`)), timeoutMs);
  });
  try {
    return await Promise.race([fn(), late]);
  } finally {
    clearTimeout(timer);
  }
}

function hook(once: TestFn[], each: TestFn[]): Hook {
  return Object.assign((fn: TestFn) => void once.push(fn), { each: (fn: TestFn) => void each.push(fn) });
}

/** The after hooks run whatever happened; the first failure is the one that is told. */
async function runTest(name: string, fn: TestFn, hooks: Hooks, timeoutMs: number): Promise<void> {
  let first = await failureOf(`before.each of "${name}"`, hooks.beforeEach, timeoutMs);
  first ??= await failureOf(`test "${name}"`, [fn], timeoutMs);
  const last = await failureOf(`after.each of "${name}"`, hooks.afterEach, timeoutMs);
  if (first ?? last) throw first ?? last;
}

/** Runs all, even after a failure; answers the first one. */
async function failureOf(what: string, fns: readonly TestFn[], timeoutMs: number): Promise<Error | undefined> {
  let first: Error | undefined;
  for (const fn of fns) {
    try {
      await withTimeout(what, timeoutMs, fn);
    } catch (error) {
      first ??= error instanceof Error ? error : new Error(`${what} threw ${String(error)}`);
    }
  }
  return first;
}

function failTheRun(failure: Error): void {
  console.error(failure);
  // uvu sets the exit code when it is through: only what is said at the exit itself stands.
  process.once("exit", () => {
    process.exitCode = 1;
  });
}
