/**
 * The worker's image without Docker: the Dockerfile's own lines, done in empty folders. The first stage installs, builds
 * and prunes; the second holds what it copies, is not writable, and its command is run by a user who is not root.
 */
import { execFile } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { assert, suite } from "../support/suite.ts";

const run = promisify(execFile);
const test = suite("worker image", { timeoutMs: 110_000 });
const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
/** Debian's nobody. Only root can become somebody else; anybody else is not root already. */
const nobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
let folder = "";
let app = "";

test.before(async () => {
  folder = mkdtempSync(join(tmpdir(), "headfast-image-"));
  chmodSync(folder, 0o755);
  const build = join(folder, "build");
  app = join(folder, "app");
  const stages = readFileSync(join(root, "Dockerfile"), "utf8")
    .replaceAll("\\\n", " ")
    .split(/^FROM .*$/m)
    .slice(1);
  assert.is(stages.length, 2, "the Dockerfile has two stages");
  mkdirSync(build);
  mkdirSync(app);
  for (const line of linesOf(stages[0])) await buildStep(line, build);
  for (const line of linesOf(stages[1])) finalStep(line, build);
});

test.after(() => rmSync(folder, { recursive: true }));

function linesOf(stage: string | undefined): string[] {
  return (stage ?? "").split("\n").filter((line) => line.trim() !== "" && !line.startsWith("#"));
}

async function buildStep(line: string, build: string): Promise<void> {
  const [instruction, ...words] = line.split(/\s+/);
  if (instruction === "WORKDIR") return;
  if (instruction === "COPY") return copy(words, root, build);
  assert.is(instruction, "RUN", `a step that this test cannot do: ${line}`);
  // What npm has in its cache is taken from there, so that this works without a network after npm ci.
  await run(words[0] as string, words.slice(1), { cwd: build, env: { ...environment(), npm_config_prefer_offline: "true" } });
}

function finalStep(line: string, build: string): void {
  const [instruction, from, ...words] = line.split(/\s+/);
  assert.match(instruction ?? "", /^(COPY|RUN|ENV|WORKDIR|USER|CMD)$/);
  if (instruction !== "COPY") return;
  assert.is(from, "--from=build");
  copy(
    words.map((word) => word.replace(/^\/app\//, "")),
    build,
    app,
  );
}

function copy(words: readonly string[], from: string, to: string): void {
  const sources = words.slice(0, -1);
  const target = words.at(-1) as string;
  const isFolder = target.endsWith("/");
  for (const source of sources) cpSync(join(from, source), join(to, target, isFolder ? basename(source) : ""), { recursive: true });
}

/** As a container starts: nothing of this process but where programs are. */
function environment(): NodeJS.ProcessEnv {
  const { PATH, HOME } = process.env;
  const npm = Object.entries(process.env).filter(([name]) => /^npm_config_(cache|registry|userconfig)$/i.test(name));
  return { PATH, HOME, ...Object.fromEntries(npm) };
}

/** Runs a program in the image's folder as its user. */
async function asUser(program: string, args: readonly string[]): Promise<string> {
  const { stdout } = await run(program, args, {
    cwd: app,
    ...nobody,
    env: { PATH: process.env.PATH, HOME: "/nonexistent", NODE_ENV: "production" },
  });
  return stdout;
}

test("holds the built program and what it needs to run, and nothing else", () => {
  assert.equal(readdirSync(app).sort(), ["dist", "node_modules", "package.json"]);
  const { dependencies, devDependencies } = JSON.parse(readFileSync(join(app, "package.json"), "utf8")) as Record<
    string,
    Record<string, string>
  >;
  const installed = readdirSync(join(app, "node_modules"));
  for (const name of Object.keys(dependencies ?? {})) assert.ok(installed.includes(name.split("/")[0] as string), `${name} is missing`);
  for (const name of ["typescript", "tsx", "uvu"])
    assert.ok(name in (devDependencies ?? {}) && !installed.includes(name), `${name} is still there`);
});

test("its command runs as a user who is not root and may write nothing there", async () => {
  const help = await asUser(process.execPath, ["dist/cli/headfast.js", "--help"]);
  assert.match(help, "worker");
  if (process.getuid?.() === 0) {
    const who = await asUser(process.execPath, ["-p", "process.getuid()"]);
    assert.is(who.trim(), "65534");
  }
});

test("the config of this repository, as the compose file mounts it, finds headfast by its name and gives bots", async () => {
  cpSync(join(root, "bot"), join(app, "bot"), { recursive: true });
  const show = 'import("./bot/headfast.config.mjs").then(({ bots }) => console.log(bots.map(({ name }) => name).join()))';
  assert.is((await asUser(process.execPath, ["-e", show])).trim(), "helper");
});

test.run();
