/** Building log entries: keys, hash chain, and what each kind does to the checkpoint. Pure but for `system`. */
import { createHash } from "node:crypto";
import { HeadfastError } from "./errors.ts";
import { turnKey } from "./ids.ts";
import type { System } from "./ports.ts";
import { type Checkpoint, type Entry, recordVersion } from "./records.ts";

/** Where the log ends: what the next entry is built on. */
export interface Tail {
  seq: number;
  hash: string;
  checkpoint: Checkpoint;
}

/** An entry before it has a place: everything but what the tail and the system give. */
export type Draft = Partial<Omit<Entry, "v" | "session" | "seq" | "writer" | "previousHash" | "hash" | "at">> &
  Pick<Entry, "kind" | "checkpoint" | "worker">;

/** The hash before the first entry. */
export const chainStart = "0".repeat(64);

export function tailOf(entry: Entry): Tail {
  return { seq: entry.seq, hash: entry.hash, checkpoint: entry.checkpoint };
}

/** Gives a draft its place behind the tail. The same writer may be used for a second try of the same answer. */
export function buildEntry(session: string, tail: Tail, draft: Draft, system: System, writer = system.id()): Entry {
  const seq = tail.seq + 1;
  const body = {
    v: recordVersion,
    session,
    seq,
    turn: null,
    step: null,
    messages: [],
    rendered: [],
    dialect: null,
    usage: null,
    model: null,
    notice: null,
    outcome: null,
    cause: null,
    reason: null,
    parks: false,
    by: null,
    why: null,
    prefixSha256: null,
    ...draft,
    entryKey: entryKeyOf(draft, seq),
    writer,
    at: new Date(system.now()).toISOString(),
    previousHash: tail.hash,
  };
  return { ...body, hash: hashOf(body) };
}

/**
 * Unique in the session and never absent. A step, an outcome without a step and a discarding are each possible once;
 * a re-own once per epoch; putting a turn to the head as often as it is done.
 */
function entryKeyOf(draft: Draft, seq: number): string {
  const turn = draft.turn ? turnKey(draft.turn.turnId, draft.turn.generation) : "";
  switch (draft.kind) {
    case "step":
      return `step:${turn}#${draft.step}`;
    case "dead":
    case "cancelled":
      return `outcome:${turn}`;
    case "discarded":
      return `discarded:${turn}`;
    case "reowned":
      return `reowned:${draft.checkpoint.ownerEpoch}`;
    case "next":
      return `next:${seq}`;
  }
}

export function discardedKey(turnId: string, generation: number): string {
  return `discarded:${turnKey(turnId, generation)}`;
}

/** SHA-256 of the entry's canonical JSON (sorted keys, no `hash`, nothing undefined). */
export function hashOf(entry: Omit<Entry, "hash">): string {
  return createHash("sha256").update(canonical(entry)).digest("hex");
}

function canonical(value: unknown): string {
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  if (Array.isArray(value)) return value.length === 0 ? "[]" : `[${value.map(canonical).join(",")}]`;
  let text = "";
  for (const key of Object.keys(value).sort()) {
    const field = (value as Record<string, unknown>)[key];
    if (field !== undefined && key !== "hash") text += `${text === "" ? "" : ","}${JSON.stringify(key)}:${canonical(field)}`;
  }
  return `{${text}}`;
}

/** @throws `document_invalid` where an entry is not what was written, or does not follow the one before. */
export function checkChain(entry: Entry, previous: Pick<Tail, "seq" | "hash">): void {
  const where = `transcript of session ${JSON.stringify(entry.session)}, seq ${entry.seq}`;
  if (entry.seq !== previous.seq + 1 || entry.previousHash !== previous.hash) {
    throw new HeadfastError("document_invalid", `${where}: does not follow entry ${previous.seq} (previous_hash)`, {
      data: { session: entry.session, seq: entry.seq, field: "previous_hash" },
    });
  }
  if (hashOf(entry) !== entry.hash) {
    throw new HeadfastError("document_invalid", `${where}: was changed after it was written (hash)`, {
      data: { session: entry.session, seq: entry.seq, field: "hash" },
    });
  }
}
