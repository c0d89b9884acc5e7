/**
 * A net change as the model reads it: bounded, well-formed, in one order, the same bytes for the same change (I7). Paths and
 * branch names are anybody's text: what could end a line, hide, or look like one of our tags is written `\xNN`, which
 * the file tools take back as it stands.
 */
import assert from "node:assert/strict";
import { limits } from "./limits.ts";

export type PathChange =
  | { status: "added" | "deleted" | "modified"; path: string }
  /** The same bytes at another path; `from` is where they were. */
  | { status: "renamed"; path: string; from: string }
  | { status: "mode"; path: string; modeFrom: string; modeTo: string }
  /** A repository inside the Memory Repository has another HEAD, or came in the place of a file. */
  | { status: "repository"; path: string };

export interface NetChange {
  /** `null`: the same branch. A name of `null`: detached. */
  branch: { from: string | null; to: string | null } | null;
  /** By path, by code unit. */
  paths: PathChange[];
}

const heading = "The Memory Repository changed since you last heard of it.";
/** Room for the line that counts the rest. */
const tailBytes = 64;

/** The notice's text, at most `limits.noticePathsMax` paths and `limits.noticeBytesMax` UTF-8 bytes, without a trailing newline. */
export function renderNotice(change: NetChange): string {
  const lines = [heading];
  if (change.branch !== null) lines.push(`branch: ${branchName(change.branch.from)} -> ${branchName(change.branch.to)}`);
  const shown = fittingLines(change.paths, Buffer.byteLength(lines.join("\n")));
  lines.push(...shown);
  const left = change.paths.length - shown.length;
  if (left > 0) lines.push(`and ${left} more ${left === 1 ? "path" : "paths"}`);
  const text = lines.join("\n");
  assert(Buffer.byteLength(text) <= limits.noticeBytesMax, "I7: a notice is bounded");
  return text;
}

function fittingLines(paths: readonly PathChange[], bytesBefore: number): string[] {
  const lines: string[] = [];
  let bytes = bytesBefore + tailBytes;
  for (const change of paths.slice(0, limits.noticePathsMax)) {
    const line = lineOf(change);
    bytes += Buffer.byteLength(line) + 1;
    if (bytes > limits.noticeBytesMax) break;
    lines.push(line);
  }
  return lines;
}

function lineOf(change: PathChange): string {
  const path = quoted(change.path);
  switch (change.status) {
    case "renamed":
      return `renamed: ${quoted(change.from)} -> ${path}`;
    case "mode":
      return `mode ${change.modeFrom} -> ${change.modeTo}: ${path}`;
    case "repository":
      return `repository changed: ${path}`;
    default:
      return `${change.status}: ${path}`;
  }
}

function branchName(name: string | null): string {
  return name === null ? "none (detached)" : quoted(name);
}

/** In quotes, escaped, at most `limits.noticeNameBytesMax` bytes; a longer one ends in `…` after the closing quote. */
function quoted(name: string): string {
  let text = "";
  let bytes = 0;
  // Whole characters and whole escapes: a cut falls on neither.
  for (const [piece] of name.matchAll(/\\x[0-9a-f]{2}|\\\\|./gsu)) {
    const safe = piece.length === 1 || !piece.startsWith("\\") ? harmless(piece) : piece;
    bytes += Buffer.byteLength(safe);
    if (bytes > limits.noticeNameBytesMax) return `"${text}"…`;
    text += safe;
  }
  return `"${text}"`;
}

/** Controls, format characters (they reorder or hide), separators, lone code units, quotes and angle brackets. */
const harmful = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}"<>]/u;

function harmless(character: string): string {
  if (!harmful.test(character)) return character;
  return [...Buffer.from(character)].map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("");
}
