/** Text for the model within its limits: well-formed, cut at a character, and honest about what was left out. */
import { limits } from "../domain/limits.ts";

/** The text in at most `bytesMax` UTF-8 bytes; where it is cut, the note says how much is missing. */
export function boundText(text: string, bytesMax: number): string {
  const bytes = Buffer.from(text.toWellFormed());
  if (bytes.length <= bytesMax) return bytes.toString("utf8");
  const end = characterStart(bytes, Math.max(0, bytesMax - Buffer.byteLength(cutNote(bytes.length, bytes.length))));
  return bytes.toString("utf8", 0, end) + cutNote(bytes.length - end, bytes.length);
}

function cutNote(cut: number, whole: number): string {
  return `\n[cut: ${cut} of ${whole} bytes are left out]`;
}

/** A line in at most `bytesMax` bytes, an ellipsis included. */
export function boundLine(line: string, bytesMax: number): string {
  const bytes = Buffer.from(line.toWellFormed());
  return bytes.length <= bytesMax ? bytes.toString("utf8") : `${bytes.toString("utf8", 0, characterStart(bytes, bytesMax - 3))}…`;
}

function characterStart(bytes: Buffer, at: number): number {
  let start = at;
  while (((bytes[start] ?? 0) & 0xc0) === 0x80) start -= 1;
  return start;
}

/** Lines within `limits.toolLinesMax` and `limits.toolResultBytesMax`; what does not fit is counted. */
export class Listing {
  readonly #lines: string[] = [];
  #bytes = 0;
  #rest = 0;

  /** Lines added so far, those that did not fit included. */
  get count(): number {
    return this.#lines.length + this.#rest;
  }

  add(line: string): void {
    const bytes = Buffer.byteLength(line) + 1;
    const full = this.#rest > 0 || this.#lines.length >= limits.toolLinesMax || this.#bytes + bytes > limits.toolResultBytesMax - noteBytes;
    if (full) {
      this.#rest += 1;
      return;
    }
    this.#lines.push(line);
    this.#bytes += bytes;
  }

  /** The lines, a count of the rest with how to get at it, and notes. `none` stands for no line at all. */
  text(none: string, what: string, how: string, notes: readonly string[] = []): string {
    const rest = this.#rest === 0 ? [] : [`[${this.#rest} more ${what}: ${how}]`];
    return [...(this.count === 0 ? [none] : this.#lines), ...rest, ...notes].join("\n");
  }
}

/** Room that is kept for what stands behind a listing. */
const noteBytes = 1024;
