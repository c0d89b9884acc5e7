/** A command line that cannot be run, and what may have been meant. */
import { HeadfastError } from "../domain/errors.ts";

/** Ends the command with exit code 2. */
export class UsageError extends HeadfastError {
  constructor(message: string) {
    super("invalid_input", message);
    this.name = "UsageError";
  }
}

/** `; did you mean session ls?`, or nothing where no known word is near. */
export function didYouMean(given: string, known: readonly string[]): string {
  const near = known.map((word) => ({ word, distance: distanceOf(given, word) })).sort((a, b) => a.distance - b.distance)[0];
  const far = near === undefined || near.distance > Math.max(2, Math.floor(given.length / 3));
  return far ? "" : `; did you mean ${near.word}?`;
}

/** Insertions, deletions and replacements from one word to the other. */
function distanceOf(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, replaced));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
