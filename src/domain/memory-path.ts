/**
 * Paths of a Memory Repository as text. Git's paths are bytes: valid UTF-8 stays as it is, a byte that is not becomes
 * `\xNN`, and a backslash is doubled, so that two paths never share a text. Notices, tools, overlays and manifests all use
 * this one form; `/memory/x`, `./x` and `x` name the same file.
 */
import { HeadfastError } from "./errors.ts";

/** Where the agent is told its Memory Repository lies. */
export const memoryRoot = "/memory";

/** The text of a path's bytes. Injective. */
export function pathText(bytes: Buffer): string {
  const text = bytes.toString("utf8");
  const valid = !text.includes("\uFFFD") || Buffer.from(text).equals(bytes);
  return valid ? text.replaceAll("\\", "\\\\") : textOfInvalid(bytes);
}

function textOfInvalid(bytes: Buffer): string {
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const length = sequenceLength(bytes, at);
    if (length === 0) text += hexByte(bytes[at] ?? 0);
    else text += bytes.toString("utf8", at, at + length);
    at += Math.max(length, 1);
  }
  return text;
}

/** Bytes of the valid UTF-8 sequence at `at`, 0 where there is none. A backslash counts as none: it must not look like an escape. */
function sequenceLength(bytes: Buffer, at: number): number {
  const lead = bytes[at] ?? 0;
  if (lead === 0x5c) return 0;
  const length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  const slice = bytes.subarray(at, at + length);
  return Buffer.from(slice.toString("utf8")).equals(slice) ? length : 0;
}

function hexByte(byte: number): string {
  return byte === 0x5c ? "\\\\" : `\\x${byte.toString(16).padStart(2, "0")}`;
}

/** The bytes of a path's text. @throws {HeadfastError} `invalid_input` where a backslash is neither doubled nor `\xNN`. */
export function pathBytes(text: string): Buffer {
  if (!text.includes("\\")) return Buffer.from(text);
  const parts = text.split(/(\\\\|\\x[0-9a-fA-F]{2})/);
  return Buffer.concat(parts.map((part) => bytesOfPart(part, text)));
}

function bytesOfPart(part: string, whole: string): Buffer {
  if (part === "\\\\") return Buffer.from("\\");
  if (part.startsWith("\\x") && part.length === 4) return Buffer.from([Number.parseInt(part.slice(2), 16)]);
  if (part.includes("\\")) throw refused(whole, "a backslash in a path is written twice, and a byte that is not UTF-8 as \\xNN");
  return Buffer.from(part);
}

/**
 * The one spelling of a path below the virtual root, `""` for the root itself: `/memory/x/`, `./x` and `x` become `x`.
 * This is the lexical half of the jail. @throws {HeadfastError} `invalid_input` for `..`, another absolute path, NUL, `.git`.
 */
export function memoryPath(text: string): string {
  if (!text.isWellFormed()) throw refused(text, "it holds a lone surrogate");
  const whole = pathText(pathBytes(text));
  const below = whole === memoryRoot || whole.startsWith(`${memoryRoot}/`) ? whole.slice(memoryRoot.length + 1) : whole;
  if (below.startsWith("/")) throw refused(text, `an absolute path must begin with ${memoryRoot}/`);
  const segments = below.split("/").filter((segment) => segment !== "" && segment !== ".");
  for (const segment of segments) checkSegment(segment, text);
  return segments.join("/");
}

function checkSegment(segment: string, whole: string): void {
  if (segment === "..") throw refused(whole, "it must not leave the repository by `..`");
  if (segment.includes("\0")) throw refused(whole, "it holds a NUL byte");
  if (isGitFolder(segment)) throw refused(whole, "git's own folder is not part of the memory");
}

/** `.git` as any file system may take it: letter case, NTFS short names, streams and trailing dots, HFS's ignored characters. */
function isGitFolder(segment: string): boolean {
  const plain = segment
    .replace(/[\u200C-\u200F\u202A-\u202E\u206A-\u206F\uFEFF]/gu, "")
    .replace(/:.*$/su, "")
    .replace(/[. ]+$/u, "")
    .toLowerCase();
  return plain === ".git" || /^git~\d+$/u.test(plain);
}

function refused(path: string, reason: string): HeadfastError {
  return new HeadfastError("invalid_input", `the path ${JSON.stringify(path.slice(0, 200))} is refused: ${reason}`, {
    data: { path: path.slice(0, 200), reason },
  });
}
