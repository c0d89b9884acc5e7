/** What the tidiness rules look at: the repository's text files, and the imports in them. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";

export interface TextFile {
  /** From the repository's root, with `/`. */
  path: string;
  text: string;
}

export interface Finding {
  path: string;
  line: number;
  /** What is wrong and what takes its place. */
  message: string;
}

export interface Import {
  from: string;
  line: number;
  /** A path from the root where it was relative, else the package's or module's name as written. */
  target: string;
  relative: boolean;
}

/** Tracked files and those that git would add, as text; binary ones are left out. */
export function repositoryFiles(root: string): TextFile[] {
  const listed = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], { cwd: root, encoding: "utf8" });
  const paths = [...new Set(listed.split("\0"))].filter((path) => path !== "" && existsSync(join(root, path)));
  return paths.map((path) => ({ path, text: readFileSync(join(root, path), "utf8") })).filter(({ text }) => !text.includes("\0"));
}

export function isSource(path: string): boolean {
  return /^(src|services|demo|bench|test)\/.*\.ts$/.test(path);
}

const importForms = [
  /^(?:import|export)\b[^"';]*?\bfrom\s*["']([^"']+)["']/gm, // import … from, export … from, over several lines
  /^import\s+["']([^"']+)["']/gm, // for its effects
  /\bimport\(\s*["']([^"']+)["']\s*\)/gm, // when it is needed, or the type of it
  /\bnew URL\(\s*["'](\.[^"']+\.ts)["']\s*,\s*import\.meta\.url/gm, // run in a thread or a process
];

/** Every import of a file, types and dynamic ones included. */
export function importsOf({ path, text }: TextFile): Import[] {
  const code = withoutComments(text);
  return importForms.flatMap((form) =>
    [...code.matchAll(form)].map((match) => {
      const name = match[1] as string;
      const relative = name.startsWith(".");
      const target = relative ? posix.normalize(posix.join(posix.dirname(path), name)) : name;
      return { from: path, line: lineAt(code, match.index), target, relative };
    }),
  );
}

/** The text with comments blanked and every line in its place. Good enough for code that a formatter has seen. */
export function withoutComments(text: string): string {
  const blanked = text.replace(/^([ \t]*)\/\*[\s\S]*?\*\//gm, (comment) => comment.replace(/[^\n]/g, " "));
  return blanked.replace(/(?<=^|[ \t])\/\/.*$/gm, (comment) => " ".repeat(comment.length));
}

/** From 1. */
export function lineAt(text: string, index: number): number {
  return text.slice(0, index).split("\n").length;
}

/** One finding for each match of a pattern (with the `g` flag). */
export function findAll(path: string, text: string, pattern: RegExp, message: (match: string) => string): Finding[] {
  return [...text.matchAll(pattern)].map((match) => ({ path, line: lineAt(text, match.index), message: message(match[0]) }));
}
