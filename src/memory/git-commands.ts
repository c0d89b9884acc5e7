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
  /** Where the configuration and `info/` are, for a linked worktree too. */
  commonDir: string;
  head: Head | null;
}

export interface Head {
  commit: string;
  /** The full name that it was found under, `HEAD` when detached. */
  name: string;
}

/**
 * What git makes of the folder, and where HEAD is. Fails where git refuses it: foreign owner, broken `.git`. An unborn
 * HEAD is answered with nothing, or, where a branch is called HEAD, with that one.
 */
export const openCommand: TextCommand<Opened> = {
  args: [
    "rev-parse",
    "--is-bare-repository",
    "--show-object-format",
    "--path-format=absolute",
    "--git-common-dir",
    "--revs-only",
    "HEAD",
    "--symbolic-full-name",
    "HEAD",
  ],
  parse(output) {
    const [bare, objectFormat = "sha1", ...rest] = output.replace(/\n$/u, "").split("\n");
    const [commit = "", name = ""] = rest.slice(-2);
    const born = rest.length > 2 && /^[0-9a-f]{40,64}$/u.test(commit) && /^(?:HEAD$|refs\/)/u.test(name);
    // A path may hold a newline, so it is what is left.
    return {
      bare: bare === "true",
      objectFormat,
      commonDir: (born ? rest.slice(0, -2) : rest).join("\n"),
      head: born ? { commit, name } : null,
    };
  },
};

/** Settings that change what `git add` makes of a file. No other setting of the repository is heeded. */
export const heededSettings = [
  "core.autocrlf",
  "core.eol",
  "core.filemode",
  "core.ignorecase",
  "core.precomposeunicode",
  "core.symlinks",
] as const;

export interface Settings {
  /** `name=value`, by name. */
  values: string[];
  excludesFile: string | null;
  /** Everything stands in the repository's one configuration file: nothing is included, no worktree has its own. */
  oneFile: boolean;
}

/** The repository's own configuration, with what it includes. Listing it runs nothing. */
export const settingsCommand: TextCommand<Settings> = {
  args: ["config", "--list", "-z", "--includes"],
  parse(output) {
    const all = new Map(output.split("\0").map(settingOf));
    const values = heededSettings.flatMap((name) => (all.has(name) ? [`${name}=${all.get(name)}`] : []));
    const oneFile = ![...all.keys()].some((key) => /^include(?:if)?\.|^extensions\.worktreeconfig$/u.test(key));
    return { values, excludesFile: all.get("core.excludesfile") ?? null, oneFile };
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

function lineText(output: Buffer): string {
  return pathText(output.at(-1) === 10 ? output.subarray(0, -1) : output);
}

/** Brings an index up to date with the whole working tree. */
export function addCommand(settings: readonly string[], excludesFile: string): GitCommand<void> {
  return {
    args: [...configArgs([...settings, `core.excludesFile=${excludesFile}`]), "add", "-A", "--no-warn-embedded-repo"],
    silent: true,
    parse: () => undefined,
  };
}

/** Everything in an index, for `parseStaged`. */
export const listCommand: GitCommand<Buffer> = { args: ["ls-files", "-s", "-z"], parse: (output) => output };

/** Takes what stdin names (NUL-separated bytes) out of an index. */
export const forgetCommand: GitCommand<void> = { args: ["update-index", "-z", "--force-remove", "--stdin"], parse: () => undefined };

/** Of the paths on stdin (NUL-separated bytes, each behind `./`, which makes none a pattern), those that are ignored, as text. */
export const ignoredCommand: GitCommand<string[]> = {
  args: ["check-ignore", "-z", "--stdin"],
  exitCodes: [0, 1],
  parse: (output) => recordsOf(output).map((path) => pathText(path.subarray(2))),
};

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
  const text = output.toString("utf8");
  // As one text, which is several times as fast; where a name may be no UTF-8, record by record.
  if (text.includes("\uFFFD") || text.includes("\\"))
    return recordsOf(output).map((record) => stagedEntry(record.toString("latin1"), (tab) => pathText(record.subarray(tab))));
  const records = text.split("\0");
  if (records.pop() !== "") throw cutOff(output.length - output.lastIndexOf(0) - 1);
  return records.map((record) => stagedEntry(record, (tab) => record.slice(tab)));
}

function stagedEntry(record: string, pathAt: (start: number) => string): ManifestEntry {
  const tab = record.indexOf("\t");
  const afterMode = record.indexOf(" ");
  return { path: pathAt(tab + 1), mode: record.slice(0, afterMode), blob: record.slice(afterMode + 1, record.indexOf(" ", afterMode + 1)) };
}

/** NUL ends each record. @throws where the output was cut off. */
export function recordsOf(output: Buffer): Buffer[] {
  const records: Buffer[] = [];
  let start = 0;
  for (let end = output.indexOf(0); end >= 0; end = output.indexOf(0, start)) {
    records.push(output.subarray(start, end));
    start = end + 1;
  }
  if (start !== output.length) throw cutOff(output.length - start);
  return records;
}

function cutOff(bytes: number): Error {
  return new Error(`git's list ends in the middle of a record, ${bytes} bytes behind the last NUL`);
}
