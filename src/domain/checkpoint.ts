/**
 * What a log entry says of everything before it, as pure transitions. Each entry carries its checkpoint whole, so the
 * last entry alone decides what comes next: nobody has to read the log to know whose turn it is.
 */
import assert from "node:assert/strict";
import type { Checkpoint, Ownership, TurnRef } from "./records.ts";

/** Before the first entry: what the ownership document says. */
export function initialCheckpoint(owner: Pick<Ownership, "bot" | "ownerEpoch" | "baseline">): Checkpoint {
  return {
    bot: owner.bot,
    ownerEpoch: owner.ownerEpoch,
    baseline: owner.baseline ?? 0,
    through: 0,
    above: [],
    next: [],
    open: null,
    parked: null,
    owed: null,
    heard: null,
    wrote: [],
    notesTold: 0,
    sequence: null,
  };
}

/** Whether the turn of this number has an outcome. */
export function hasOutcome(checkpoint: Checkpoint, number: number): boolean {
  if (number <= checkpoint.through) return true;
  return checkpoint.above.some(([from, to]) => from <= number && number <= to);
}

/** Marks an outcome: one per number (I4). Keeps `through` the largest number up to which all have one. */
export function withOutcome(checkpoint: Checkpoint, number: number): Checkpoint {
  assert(!hasOutcome(checkpoint, number), `turn ${number} has an outcome already`); // I4
  const ranges = addToRanges(checkpoint.above, number);
  const [first] = ranges;
  const reaches = first !== undefined && first[0] === checkpoint.through + 1;
  return {
    ...checkpoint,
    through: reaches ? first[1] : checkpoint.through,
    above: reaches ? ranges.slice(1) : ranges,
    next: checkpoint.next.filter((n) => n !== number),
    open: checkpoint.open?.number === number ? null : checkpoint.open,
  };
}

function addToRanges(ranges: readonly [number, number][], number: number): [number, number][] {
  const merged: [number, number][] = [];
  for (const [from, to] of [...ranges, [number, number] as [number, number]].sort((a, b) => a[0] - b[0])) {
    const last = merged.at(-1);
    if (last !== undefined && from <= last[1] + 1) last[1] = Math.max(last[1], to);
    else merged.push([from, to]);
  }
  return merged;
}

/** The next generation of a parked turn, or its discarding, or its cancelling lets the session go on (rule 18). */
export function unparked(checkpoint: Checkpoint, turnId: string): Checkpoint {
  return checkpoint.parked?.turnId === turnId ? { ...checkpoint, parked: null } : checkpoint;
}

export function parkedAt(checkpoint: Checkpoint, turn: TurnRef): Checkpoint {
  return { ...checkpoint, parked: { turnId: turn.turnId, generation: turn.generation } };
}

/** To the head, behind those that were put there before. */
export function withNext(checkpoint: Checkpoint, number: number): Checkpoint {
  if (checkpoint.next.includes(number) || hasOutcome(checkpoint, number)) return checkpoint;
  return { ...checkpoint, next: [...checkpoint.next, number] };
}
