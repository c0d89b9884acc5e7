/**
 * The one place where git is started. The repository is not trusted: git gets an environment of our own making, in which
 * no inherited `GIT_*`, editor, pager or shell setting exists, no system or global configuration, and no prompt; it is
 * stopped with all that it started when it takes too long or prints too much; and what it says on stderr is the cause.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { devNull } from "node:os";
import { delimiter, dirname, isAbsolute } from "node:path";
import { type SimpleGit, simpleGit } from "simple-git";
import { HeadfastError } from "../domain/errors.ts";
import { limits } from "../domain/limits.ts";
import type { System } from "../domain/ports.ts";
import type { GitCommand, TextCommand } from "./git-commands.ts";

/** Where a command runs, and on what. */
export interface GitPlace {
  /** The working tree. */
  root: string;
  /** An empty folder. */
  home: string;
  system: System;
  /** A git folder, index and objects of our own; absent: the repository's. */
  own?: { gitDir: string; index: string; objects: string };
}

/** Bytes, or an open file, for a command's stdin. */
export type GitInput = Uint8Array | { fd: number };

/** Limits of one command; smaller ones are for tests. */
export interface GitLimits {
  ms: number;
  outputBytes: number;
}

const usualLimits: GitLimits = { ms: limits.gitMsMax, outputBytes: limits.gitOutputBytesMax };

/** Holds for every command: nothing that a configuration names is run, and no check of another system's file names applies. */
const hardened = [
  "core.hooksPath=" + devNull,
  "core.fsmonitor=false",
  "core.untrackedCache=false",
  "core.sparseCheckout=false",
  "core.attributesFile=" + devNull,
  "core.warnAmbiguousRefs=false",
  "core.protectHFS=false",
  "core.protectNTFS=false",
  "submodule.recurse=false",
  "protocol.allow=never",
] as const;

/**
 * Further settings of the index of our own: exact change detection; and objects, which are thrown away at once, in one
 * uncompressed pack instead of a file each (that is what the threshold does; four times as fast).
 */
const ownSettings = [
  "core.trustCtime=true",
  "core.checkStat=default",
  "core.safecrlf=false",
  "core.bigFileThreshold=1",
  "core.compression=0",
  "core.fsync=none",
] as const;

/** Runs a command whose output is bytes. @throws {HeadfastError} `memory_unreadable` with `command` and `exitCode` */
export async function runGit<T>(place: GitPlace, command: GitCommand<T>, input?: GitInput, bounds: GitLimits = usualLimits): Promise<T> {
  const settings = place.own === undefined ? hardened : [...hardened, ...ownSettings];
  const args = ["--no-pager", ...settings.flatMap((setting) => ["-c", setting]), ...command.args];
  const { exitCode, stdout, stderr } = await collect(start(place, args, input), nameOf(command), bounds, place.system);
  const answered = (command.exitCodes ?? [0]).includes(exitCode) && !(command.silent && stderr !== "");
  if (!answered) throw unreadable(nameOf(command), exitCode, stderr);
  return parsed(command, stdout);
}

/** Runs a command whose output is short text, by simple-git. @throws {HeadfastError} `memory_unreadable` */
export async function runTextGit<T>(place: GitPlace, command: TextCommand<T>, bounds: GitLimits = usualLimits): Promise<T> {
  const failure: { exitCode: number | null } = { exitCode: null };
  const tooMuch = new AbortController();
  try {
    return command.parse(await textGit(place, failure, tooMuch, bounds).raw([...command.args]));
  } catch (error) {
    const message = tooMuch.signal.aborted ? `it printed more than ${bounds.outputBytes} bytes` : String((error as Error).message).trim();
    throw unreadable(nameOf(command), failure.exitCode, message, error);
  }
}

/** simple-git refuses our hardening unless it is told that these settings and variables are meant. */
function textGit(place: GitPlace, failure: { exitCode: number | null }, tooMuch: AbortController, bounds: GitLimits): SimpleGit {
  const env = environment(place);
  const git = simpleGit({
    baseDir: place.root,
    abort: tooMuch.signal,
    allowEnvironment: Object.keys(env),
    config: [...hardened],
    // Its default sets a timer at the exit and may take the output for whole before the pipe is closed.
    completion: { onClose: true, onExit: false },
    timeout: { block: bounds.ms, stdOut: false, stdErr: false },
    unsafe: {
      allowUnsafeConfigPaths: true,
      allowUnsafeFsMonitor: true,
      allowUnsafeHooksPath: true,
      allowUnsafeProtocolOverride: true,
      allowUnsafeSubmodule: true,
    },
    errors(error, result) {
      failure.exitCode = result.exitCode;
      return error;
    },
  });
  return git.env(env).outputHandler((_command, stdout) => {
    let bytes = 0;
    stdout.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > bounds.outputBytes) tooMuch.abort();
    });
  });
}

/** Made from nothing: what is not named here does not reach git. */
export function environment({ root, home, own }: GitPlace): Record<string, string> {
  return {
    PATH: absolutePath(process.env["PATH"]),
    HOME: home,
    LC_ALL: "C",
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CONFIG_GLOBAL: devNull,
    GIT_ATTR_NOSYSTEM: "1",
    GIT_TERMINAL_PROMPT: "0",
    GIT_OPTIONAL_LOCKS: "0",
    GIT_NO_LAZY_FETCH: "1",
    GIT_NO_REPLACE_OBJECTS: "1",
    GIT_CEILING_DIRECTORIES: dirname(root),
    ...(own === undefined ? {} : ownEnvironment(root, own)),
  };
}

function ownEnvironment(root: string, own: NonNullable<GitPlace["own"]>): Record<string, string> {
  return {
    GIT_DIR: own.gitDir,
    GIT_WORK_TREE: root,
    GIT_INDEX_FILE: own.index,
    // The repository's objects are no alternates: git sets the time stamp of those that it need not write again.
    GIT_OBJECT_DIRECTORY: own.objects,
  };
}

/** Git is started inside the repository: a relative entry of PATH would find the repository's own `git`. */
function absolutePath(path = ""): string {
  return path.split(delimiter).filter(isAbsolute).join(delimiter);
}

function start(place: GitPlace, args: readonly string[], input: GitInput | undefined): ChildProcess {
  const stdin = input === undefined ? "ignore" : "fd" in input ? input.fd : "pipe";
  // A process group of its own, so that what git starts ends with it.
  const child = spawn("git", args, { cwd: place.root, env: environment(place), detached: true, stdio: [stdin, "pipe", "pipe"] });
  if (input !== undefined && !("fd" in input)) feed(child, input);
  return child;
}

function feed(child: ChildProcess, bytes: Uint8Array): void {
  // A command that ended early is reported by its exit code, not by the pipe it closed.
  child.stdin?.on("error", () => undefined);
  child.stdin?.end(bytes);
}

interface Collected {
  exitCode: number;
  stdout: Buffer;
  stderr: string;
}

function collect(child: ChildProcess, command: string, bounds: GitLimits, system: System): Promise<Collected> {
  const ended = new AbortController();
  const collected = new Promise<Collected>((resolve, reject) => {
    const out: Buffer[] = [];
    const said: Buffer[] = [];
    let bytes = 0;
    let stopped: string | undefined;
    const stop = (reason: string): void => {
      stopped ??= reason;
      killGroup(child);
    };
    void system.sleep(bounds.ms, ended.signal).then(() => {
      if (!ended.signal.aborted) stop(`it took longer than ${bounds.ms} ms`);
    });
    const take = (chunks: Buffer[]) => (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > bounds.outputBytes) stop(`it printed more than ${bounds.outputBytes} bytes`);
      else chunks.push(chunk);
    };
    child.stdout?.on("data", take(out));
    child.stderr?.on("data", take(said));
    child.once("error", (error) => reject(unreadable(command, null, error.message, error)));
    child.once("close", (exitCode, signal) => {
      const stderr = Buffer.concat(said).toString("utf8").trim();
      if (stopped !== undefined) reject(unreadable(command, exitCode, [`${stopped} and was stopped`, stderr].filter(Boolean).join("; ")));
      else if (exitCode === null) reject(unreadable(command, null, `it was ended by ${signal}; ${stderr}`));
      else resolve({ exitCode, stdout: Buffer.concat(out), stderr });
    });
  });
  return collected.finally(() => ended.abort());
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch (error) {
    // Already gone: its close event follows.
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

function parsed<T>(command: GitCommand<T>, stdout: Buffer): T {
  try {
    return command.parse(stdout);
  } catch (error) {
    throw unreadable(nameOf(command), 0, (error as Error).message, error);
  }
}

/** The first word that is not an option is what people call the command. */
function nameOf(command: { args: readonly string[] }): string {
  return `git ${command.args.find((arg, index) => !arg.startsWith("-") && command.args[index - 1] !== "-c") ?? ""}`;
}

function unreadable(command: string, exitCode: number | null, reason: string, cause?: unknown): HeadfastError {
  return new HeadfastError(
    "memory_unreadable",
    `${command} failed${exitCode === null ? "" : ` with exit code ${exitCode}`}: ${reason.slice(0, limits.errorBytesMax)}`,
    {
      data: { command, exitCode },
      cause: cause ?? new Error(reason.slice(0, limits.errorBytesMax)),
    },
  );
}
