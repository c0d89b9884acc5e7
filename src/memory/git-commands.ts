/**
 * Git commands as data: arguments, and a pure parser of the bytes they print. Nothing here runs anything. Paths are bytes
 * to git: every list is NUL-separated and becomes text by `pathText` alone.
 */
import { pathText } from "../domain/memory-path.ts";
import type { ManifestEntry } from "../domain/records.ts";

export interface GitCommand<T> {
  args: readonly string[];
  /** Exit codes that are answers. Default: 0 alone. */
  exitCodes?: readonly number[];
  /** Anything said on stderr is a failure, whatever the exit code: git only warns of a folder it cannot read. */
  silent?: boolean;
  parse(output: Buffer): T;
}

/** A command whose answer is short text: these run through simple-git. */
export interface TextCommand<T> {
  args: readonly string[];
  parse(output: string): T;
}

export interface Opened {
  bare: boolean;
  objectFormat: string;
  /** Where `info/` is, for a linked worktree too. */
  commonDir: string;
}

/** What git makes of the folder. Fails where git refuses it: foreign owner, broken `.git`. */
export const openCommand: TextCommand<Opened> = {
  args: ["rev-parse", "--is-bare-repository", "--show-object-format", "--path-format=absolute", "--git-common-dir"],
  parse(output) {
    const [bare, objectFormat, ...path] = output.replace(/\n$/u, "").split("\n");
    return { bare: bare === "true", objectFormat: objectFormat ?? "sha1", commonDir: path.join("\n") };
  },
};

/** Settings that change what `git add` makes of a file. No other setting of the repository is heeded. */
export const heededSettings = ["core.autocrlf", "core.eol", "core.filemode", "core.ignorecase", "core.precomposeunicode", "core.symlinks"] as const;

export interface Settings {
  /** `name=value`, by name. */
  values: string[];
  excludesFile: string | null;
}

/** The repository's own configuration, with what it includes. Listing it runs nothing. */
export const settingsCommand: TextCommand<Settings> = {
  args: ["config", "--list", "-z", "--includes"],
  parse(output) {
    const all = new Map(output.split("\0").map(settingOf));
    const values = heededSettings.flatMap((name) => (all.has(name) ? [`${name}=${all.get(name)}`] : []));
    return { values, excludesFile: all.get("core.excludesfile") ?? null };
  },
};

/** A key without a value, which git writes without a newline, means true. */
function settingOf(record: string): [string, string] {
  const newline = record.indexOf("\n");
  return newline < 0 ? [record, "true"] : [record.slice(0, newline), record.slice(newline + 1)];
}

/** The full name that HEAD points at, born or not; `null` when detached. */
export const branchCommand: GitCommand<string | null> = {
  args: ["symbolic-ref", "-q", "HEAD"],
  exitCodes: [0, 1],
  parse: (output) => (output.length === 0 ? null : lineText(output)),
};

export interface Head {
  commit: string;
  /** The full name that it was found under, `HEAD` when detached. */
  name: string;
}

/** The commit, `null` where there is none. An unborn HEAD may be answered with a branch called HEAD: compare the name. */
export const headCommand: GitCommand<Head | null> = {
  args: ["rev-parse", "--revs-only", "HEAD", "--symbolic-full-name", "HEAD"],
  parse(output) {
    const newline = output.indexOf(10);
    if (newline < 0) return null;
    return { commit: output.toString("latin1", 0, newline), name: lineText(output.subarray(newline + 1)) };
  },
};

function lineText(output: Buffer): string {
  return pathText(output.at(-1) === 10 ? output.subarray(0, -1) : output);
}

/** Brings an index up to date with the whole working tree. */
export function addCommand(settings: readonly string[], excludesFile: string): GitCommand<void> {
  return { args: [...configArgs([...settings, `core.excludesFile=${excludesFile}`]), "add", "-A", "--no-warn-embedded-repo"], silent: true, parse: () => undefined };
}

/** Everything in an index. */
export const listCommand: GitCommand<ManifestEntry[]> = { args: ["ls-files", "-s", "-z"], parse: parseStaged };

/** Takes what stdin names (NUL-separated bytes) out of an index. */
export const forgetCommand: GitCommand<void> = { args: ["update-index", "-z", "--force-remove", "--stdin"], parse: () => undefined };

/** Of the paths on stdin (NUL-separated bytes, each behind `./`, which makes none a pattern), those that are ignored, as text. */
export const ignoredCommand: GitCommand<string[]> = { args: ["check-ignore", "-z", "--stdin"], exitCodes: [0, 1], parse: (output) => recordsOf(output).map((path) => pathText(path.subarray(2))) };

/** The blob id that `git add` would give stdin's bytes at that path; `null` as path: the bytes as they are. */
export function hashCommand(settings: readonly string[], path: string | null): GitCommand<string> {
  const how = path === null ? "--no-filters" : `--path=${path}`;
  return { args: [...configArgs(settings), "hash-object", how, "--stdin"], parse: (output) => output.toString("latin1").trim() };
}

function configArgs(settings: readonly string[]): string[] {
  return settings.flatMap((setting) => ["-c", setting]);
}

/** `<mode> <blob> <stage>\t<path>\0`, in path order as git has it. */
export function parseStaged(output: Buffer): ManifestEntry[] {
  return recordsOf(output).map((record) => {
    const tab = record.indexOf(9);
    const [mode = "", blob = ""] = record.toString("latin1", 0, tab).split(" ");
    return { path: pathText(record.subarray(tab + 1)), mode, blob };
  });
}

/** NUL ends each record. @throws where the output was cut off. */
export function recordsOf(output: Buffer): Buffer[] {
  const records: Buffer[] = [];
  let start = 0;
  for (let end = output.indexOf(0); end >= 0; end = output.indexOf(0, start)) {
    records.push(output.subarray(start, end));
    start = end + 1;
  }
  if (start !== output.length) throw new Error(`git's list ends in the middle of a record, ${output.length - start} bytes behind the last NUL`);
  return records;
}
