/** `npm test`: every test file in a process of its own, on services that are found or started for it. See `--help`. */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { endRunningFiles, type FileResult, runTestFile } from "./support/test-file.ts";

const help = `npm test                 all tests
npm test -- NAME...      the files whose path contains a NAME
npm run test:long        all tests, those with a long form in it (HEADFAST_LONG=1)

Files under test/unit and test/simulation need no services; for all others Redis and MongoDB are found or started
(HEADFAST_REDIS_URL and HEADFAST_MONGO_URL come first). One file alone: node --import tsx FILE.
Exit code: 0 all passed, 1 something failed, 2 no file has such a name.`;

/**
 * Two files run at a time, in two lanes. One of them begins with the files that measure how long something takes while processes
 * of theirs run, so that never two of these meet; then both take what is left, the long ones first.
 */
const timed = /support\/rig|services\/launcher|demo\/run|image\.sh/;
const startsCommands = /support\/cli/;
const fileMs = { short: 120_000, long: 600_000 };
const exitMs = 5_000;

const root = dirname(dirname(fileURLToPath(import.meta.url)));

async function main(args: string[]): Promise<number> {
  if (args.includes("--help")) {
    console.log(help);
    return 0;
  }
  const long = args.includes("--long") || process.env.HEADFAST_LONG === "1";
  const names = args.filter((arg) => arg !== "--long");
  const files = testFiles();
  const unknown = names.filter((name) => !files.some((file) => file.includes(name)));
  if (unknown.length > 0 || files.length === 0) {
    console.error(`no test file below test/ has a path with ${unknown.map((name) => JSON.stringify(name)).join(", ")} in it`);
    return 2;
  }
  const results = await runAll(names.length === 0 ? files : files.filter((file) => names.some((name) => file.includes(name))), long);
  return summary(results);
}

/** Paths from the repository's root, with `/`, sorted. */
function testFiles(): string[] {
  const paths = readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" });
  return paths
    .filter((path) => path.endsWith(".test.ts"))
    .map((path) => `test/${path.split(sep).join("/")}`)
    .sort();
}

function needsServices(file: string): boolean {
  return !/^test\/(unit|simulation)\//.test(file);
}

async function runAll(files: readonly string[], long: boolean): Promise<FileResult[]> {
  const env = environment(long);
  const alone = files.filter((file) => !needsServices(file));
  const served = files.filter(needsServices);
  if (served.length === 0) return runLanes(alone, env, long);
  // Only here: tests that need no services run where the launcher's libraries are missing.
  const { findOrStart } = await import("../services/launcher.ts");
  let services: Awaited<ReturnType<typeof findOrStart>>;
  try {
    services = await findOrStart({ log: (line) => console.log(`     ${line}`) });
  } catch (error) {
    return [...(await runLanes(alone, env, long)), ...withoutServices(served, error)];
  }
  try {
    const urls = {
      HEADFAST_REDIS_URL: services.redis.url,
      HEADFAST_MONGO_URL: services.mongo.url,
      HEADFAST_MONGO_STAND_IN: services.mongo.standIn ? "1" : "0",
    };
    return await runLanes(files, { ...env, ...urls }, long);
  } finally {
    await services.stop();
  }
}

async function runLanes(files: readonly string[], env: NodeJS.ProcessEnv, long: boolean): Promise<FileResult[]> {
  const alone: string[] = [];
  const commands: string[] = [];
  const others: string[] = [];
  for (const file of files) {
    const text = readFileSync(join(root, file), "utf8");
    (timed.test(text) ? alone : startsCommands.test(text) ? commands : others).push(file);
  }
  const shared = [...commands, ...others];
  const all = commands.length > 0 ? { ...env, ...build() } : env;
  const next = (): string | undefined => shared.shift();
  return (await Promise.all([runFiles(() => alone.shift() ?? next(), all, long), runFiles(next, all, long)])).flat();
}

/** Builds the command as its users have it; what tells the files that it is there. */
function build(): NodeJS.ProcessEnv {
  execFileSync("npm", ["run", "--silent", "build"], { stdio: "inherit" });
  return { HEADFAST_TEST_BUILT: "1" };
}

/** What cannot run has failed: never a green run without services. */
function withoutServices(files: readonly string[], error: unknown): FileResult[] {
  console.error(error instanceof Error ? error.message : error);
  return files.map((path) => ({ path, passed: 0, failed: 1, reasons: ["no services"], output: "", ms: 0 }));
}

/** git run by a hook has the repository's place in its environment: no test may meet that. */
function environment(long: boolean): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("GIT_"));
  return { ...Object.fromEntries(inherited), ...(long ? { HEADFAST_LONG: "1" } : {}) };
}

async function runFiles(next: () => string | undefined, env: NodeJS.ProcessEnv, long: boolean): Promise<FileResult[]> {
  const results: FileResult[] = [];
  for (let file = next(); file !== undefined; file = next()) {
    const result = await runTestFile(file, { fileMs: long ? fileMs.long : fileMs.short, exitMs }, env);
    report(result);
    results.push(result);
  }
  return results;
}

function report(result: FileResult): void {
  const seconds = (result.ms / 1000).toFixed(1);
  if (result.failed === 0) {
    console.log(`ok   ${result.path}  ${result.passed} passed, ${seconds} s`);
    return;
  }
  console.log(`\nFAIL ${result.path}  ${result.passed} passed, ${result.failed} failed, ${seconds} s\n${result.output.trimEnd()}`);
  for (const reason of result.reasons) console.log(`  ${result.path}: ${reason}`);
  console.log("");
}

/** Prints what CI reads: the counts, alone on the last line. */
function summary(results: readonly FileResult[]): number {
  const passed = results.reduce((sum, result) => sum + result.passed, 0);
  const failed = results.reduce((sum, result) => sum + result.failed, 0);
  const failedFiles = results.filter((result) => result.failed > 0).map((result) => result.path);
  if (failedFiles.length > 0) console.log(`failed: ${failedFiles.join(", ")}`);
  console.log(`${passed} passed, ${failed} failed`);
  return failed > 0 ? 1 : 0;
}

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    void endRunningFiles().then(() => process.exit(signal === "SIGINT" ? 130 : 143));
  });
}

process.chdir(root);
main(process.argv.slice(2)).then(
  (code) => {
    process.exitCode = code;
  },
  (error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    console.log("0 passed, 1 failed");
    process.exitCode = 1;
  },
);
