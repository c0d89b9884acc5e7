/** Runs one test file in a process of its own and says what became of it: uvu's counts alone do not tell. */
import { type ChildProcess, spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";

export interface Limits {
  /** For the whole file, in milliseconds. */
  fileMs: number;
  /** From uvu's last line to the end of the process: what is then still open was leaked. */
  exitMs: number;
}

export interface FileResult {
  path: string;
  passed: number;
  /** At least 1 where the file failed as a whole. */
  failed: number;
  /** Why the file failed, beyond what its own output says. */
  reasons: string[];
  output: string;
  ms: number;
}

interface Ending {
  code: number | null;
  signal: NodeJS.Signals | null;
  stopped: "timeout" | "open handles" | undefined;
  output: string;
}

/** Time for a process to name its open handles, and again to end by itself, before it is killed. */
const farewellMs = 500;
const lastLine = /^ {2}Duration: /m;
const running = new Set<ChildProcess>();

/** Runs a file to its end, or kills it with all that it started. Never rejects for what the file does. */
export async function runTestFile(path: string, limits: Limits, env: NodeJS.ProcessEnv): Promise<FileResult> {
  const start = performance.now();
  const ending = await runToItsEnd(path, limits, env);
  return { path, ...judge(ending, limits), output: ending.output, ms: performance.now() - start };
}

/** For a runner that is itself interrupted: nothing goes on without it. Resolves when all have been killed. */
export async function endRunningFiles(graceMs = farewellMs): Promise<void> {
  for (const child of running) killGroup(child, "SIGTERM");
  if (running.size > 0) await sleep(graceMs);
  for (const child of running) killGroup(child, "SIGKILL");
}

/** Without colours. */
export function plain(text: string): string {
  return text.replace(new RegExp(`${String.fromCharCode(27)}\\[[0-9;]*m`, "g"), "");
}

/** uvu's closing lines, or undefined where it did not get there. */
export function countsIn(output: string): { total: number; passed: number; skipped: number } | undefined {
  const found = /^ {2}Total: +(\d+)\n {2}Passed: +(\d+)\n {2}Skipped: +(\d+)$/m.exec(plain(output));
  if (!found) return undefined;
  const [total, passed, skipped] = found.slice(1).map(Number) as [number, number, number];
  return { total, passed, skipped };
}

function judge(ending: Ending, limits: Limits): Pick<FileResult, "passed" | "failed" | "reasons"> {
  const counts = countsIn(ending.output);
  const { total, passed, skipped } = counts ?? { total: 0, passed: 0, skipped: 0 };
  const reasons: string[] = [];
  if (ending.stopped === "timeout") reasons.push(`killed: it did not end within ${limits.fileMs / 1000} s`);
  else if (ending.stopped === "open handles")
    reasons.push(`killed: it left handles open and did not exit within ${limits.exitMs / 1000} s of its last test`);
  else if (ending.signal) reasons.push(`ended by ${ending.signal}`);
  else if (ending.code !== 0 && passed === total) reasons.push(`exit code ${ending.code}`);
  if (!counts && reasons.length === 0) reasons.push("uvu printed no counts: does the file end with .run()?");
  if (counts && total === 0) reasons.push("it ran no test: does the file end with .run()?");
  if (skipped > 0) reasons.push(`${skipped} skipped: a test runs or does not exist`);
  return { passed, failed: Math.max(total - passed, reasons.length > 0 ? 1 : 0), reasons };
}

async function runToItsEnd(path: string, limits: Limits, env: NodeJS.ProcessEnv): Promise<Ending> {
  // A process group of its own, so that what it started can be killed with it.
  const child = spawn(process.execPath, ["--import", "tsx", path], { env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  running.add(child);
  let output = "";
  let stopped: Ending["stopped"];
  let exitTimer: NodeJS.Timeout | undefined;
  const fileTimer = setTimeout(() => {
    stopped = "timeout";
    void sayFarewell(child);
  }, limits.fileMs);
  const listen = (chunk: string): void => {
    output += chunk;
    if (exitTimer || !lastLine.test(plain(output))) return;
    exitTimer = setTimeout(() => {
      stopped = "open handles";
      void sayFarewell(child);
    }, limits.exitMs);
  };
  child.stdout.setEncoding("utf8").on("data", listen);
  child.stderr.setEncoding("utf8").on("data", listen);
  try {
    const { code, signal } = await ended(child);
    return { code, signal, stopped, output };
  } finally {
    clearTimeout(fileTimer);
    clearTimeout(exitTimer);
    running.delete(child);
  }
}

/** Resolves when the process is gone and its output is read, and ends what it left running. */
function ended(child: ChildProcess): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
  return new Promise((resolve, reject) => {
    let holdsPipes: NodeJS.Timeout | undefined;
    child.once("error", reject);
    child.once("exit", () => {
      killGroup(child, "SIGKILL");
      // A process that left the group may hold the pipes open: it is not waited for.
      holdsPipes = setTimeout(() => [child.stdout, child.stderr].map((pipe) => pipe?.destroy()), farewellMs);
    });
    child.once("close", (code, signal) => {
      clearTimeout(holdsPipes);
      resolve({ code, signal });
    });
  });
}

/** The suite wrapper answers SIGUSR2 with what keeps the process alive. A file that runs files of its own ends them on SIGTERM. */
async function sayFarewell(child: ChildProcess): Promise<void> {
  const isAlive = (): boolean => child.exitCode === null && child.signalCode === null;
  child.kill("SIGUSR2");
  await sleep(farewellMs);
  if (isAlive()) killGroup(child, "SIGTERM");
  await sleep(farewellMs);
  if (isAlive()) killGroup(child, "SIGKILL");
}

function killGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error; // the whole group is gone already
  }
}
