/** The real `headfast` command as a child process, and a folder with a config of bots whose model does as a test says. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { git, temporaryFolder } from "./git.ts";

/** `npm test` builds the package once and its commands start in half the time; a file run alone takes the sources. */
const built = process.env.HEADFAST_TEST_BUILT === "1";
const part = (path: string): URL => new URL(built ? `../../dist/${path}.js` : `../../src/${path}.ts`, import.meta.url);
const loader = built ? [] : ["--import", fileURLToPath(import.meta.resolve("tsx"))];
const entry = fileURLToPath(part("cli/headfast"));
const index = part("index").href;
const testing = part("testing/index").href;

export interface Finished {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

export interface RunningCli {
  child: ChildProcessWithoutNullStreams;
  stdout(): string;
  stderr(): string;
  /** Resolves when both streams together match; rejects where the process ends before. */
  until(pattern: RegExp): Promise<void>;
  ended: Promise<Finished>;
}

/** Nothing of this process's own environment but where programs are. */
function environment(more: Record<string, string>): Record<string, string> {
  return { PATH: process.env.PATH ?? "", HOME: process.env.HOME ?? "", ...more };
}

/** Starts `headfast` with these arguments; its stdin stays open. */
export function startCli(args: readonly string[], { env = {}, cwd }: { env?: Record<string, string>; cwd?: string } = {}): RunningCli {
  const child = spawn(process.execPath, [...loader, entry, ...args], { env: environment(env), ...(cwd !== undefined && { cwd }) });
  let stdout = "";
  let stderr = "";
  const listeners = new Set<() => void>();
  child.stdin.on("error", () => undefined); // one that ended takes no more lines
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
    for (const listener of listeners) listener();
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
    for (const listener of listeners) listener();
  });
  const ended = once(child, "close").then(([code, signal]) => ({
    code: code as number | null,
    signal: signal as NodeJS.Signals | null,
    stdout,
    stderr,
  }));
  const until = (pattern: RegExp): Promise<void> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        if (!pattern.test(stdout + stderr)) return;
        listeners.delete(look);
        resolve();
      };
      listeners.add(look);
      void ended.then(() => reject(new Error(`ended before ${pattern}: ${stdout}${stderr}`)));
      look();
    });
  return { child, stdout: () => stdout, stderr: () => stderr, until, ended };
}

/** Runs it to its end. */
export function runCli(
  args: readonly string[],
  options: { env?: Record<string, string>; cwd?: string; input?: string } = {},
): Promise<Finished> {
  const running = startCli(args, options);
  running.child.stdin.end(options.input ?? "");
  return running.ended;
}

export interface BotFolder {
  path: string;
  /** `headfast.config.mjs` with the bots `ada` (skips dead turns) and `strict` (parks). */
  config: string;
  /** Ada's Memory Repository. */
  memory: string;
  file(name: string): string;
  remove(): void;
}

/**
 * Bots that say `answer: …`. `fail` fails for good until the file `mended` is there; `wait` hangs until the file `gate`
 * is; `look and wait` uses a tool first, so that a step is recorded when it hangs. What hangs says `hanging` on stderr.
 */
export function botFolder(name: string): BotFolder {
  const folder = temporaryFolder(name);
  const file = (path: string): string => join(folder.path, path);
  const memory = file("memory");
  mkdirSync(memory);
  writeFileSync(join(memory, "PERSONA.md"), "You are Ada.\n");
  writeFileSync(join(memory, "notes.md"), "one\n");
  git(memory, "init", "-q", "-b", "main");
  git(memory, "add", "-A");
  git(memory, "commit", "-q", "-m", "first");
  writeFileSync(file("headfast.config.mjs"), configText(folder.path));
  return { path: folder.path, config: file("headfast.config.mjs"), memory, file, remove: folder.remove };
}

function configText(folder: string): string {
  return `import { existsSync } from "node:fs";
import { join } from "node:path";
import { defineBot, refuse, scriptedModel } from ${JSON.stringify(index)};
import { hang } from ${JSON.stringify(testing)};

const there = (name) => existsSync(join(${JSON.stringify(folder)}, name));
const gated = (said) => {
  if (there("gate")) return \`answer: \${said}\`;
  console.error("hanging");
  return hang();
};
const model = () => scriptedModel(({ lastUserText, toolResults }) => {
  const said = lastUserText.trim();
  if (said === "fail" && !there("mended")) return refuse("redis://u:s3cret@provider refused");
  if (said === "wait") return gated(said);
  if (said !== "look and wait") return \`answer: \${said}\`;
  return toolResults.length > 0 ? gated(said) : { tools: [{ name: "read", args: { path: "notes.md" } }] };
});

export const bots = async () => [
  defineBot({ name: "ada", model: model(), memory: join(${JSON.stringify(folder)}, "memory") }),
  defineBot({ name: "strict", model: model(), onDead: "park" }),
];
`;
}
