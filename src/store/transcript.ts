/**
 * `transcript`: a session's log, insert-only. `_id` is session and seq, so two writers cannot both have the next place;
 * (session, entry_key) makes a repeat harmless. What was rendered is kept as text, byte for byte (I1, I2).
 */
import { numberedId } from "../domain/ids.ts";
import type { Message } from "../domain/messages.ts";
import type { LogStore } from "../domain/ports.ts";
import type { Checkpoint, Entry, TurnRef, Wrote } from "../domain/records.ts";
import type { Documents, Key, Shape } from "./documents.ts";
import { causeOfFailure, heard, outcome } from "./fields.ts";
import { finite, flag, id, json, listOf, nullable, object, oneOf, rangeOf, text, whole } from "./mapping.ts";

/** MongoDB never looks inside them, and their keys may be anything. */
const messages = json<Message[]>("an array of messages", (value) => Array.isArray(value) && value.every(isMessage));

function isMessage(value: unknown): boolean {
  return typeof value === "object" && value !== null && "role" in value && ["user", "assistant", "tool"].includes(String(value.role));
}

const turnRef = object<TurnRef>({ turnId: ["turn_id", text], generation: ["generation", whole] });

const tokens = nullable(finite);

const checkpoint = object<Checkpoint>({
  bot: ["bot_id", text],
  ownerEpoch: ["owner_epoch", whole],
  baseline: ["baseline", whole],
  through: ["through", whole],
  above: ["above", listOf(rangeOf(whole))],
  next: ["next", listOf(whole)],
  open: [
    "open",
    nullable(object({ number: ["number", whole], turnId: ["turn_id", text], generation: ["generation", whole], steps: ["steps", whole] })),
  ],
  parked: ["parked", nullable(turnRef)],
  owed: ["owed", nullable(turnRef)],
  heard: ["heard", nullable(heard)],
  wrote: ["wrote", listOf(object<Wrote>({ path: ["path", text], blobs: ["blobs", listOf(nullable(text))] }))],
  notesTold: ["notes_told", whole],
  sequence: ["sequence", nullable(object({ length: ["length", whole], sha256: ["sha256", text] }))],
});

export const transcriptShape: Shape<Entry> = {
  collection: "transcript",
  keyOf: (entry) => keyOf(entry.session, entry.seq),
  fields: {
    v: ["v", whole],
    session: ["session", id("session")],
    seq: ["seq", whole],
    entryKey: ["entry_key", text],
    writer: ["writer", text],
    kind: ["kind", oneOf("step", "dead", "cancelled", "next", "reowned", "discarded")],
    turn: ["turn", nullable(object({ number: ["number", whole], turnId: ["turn_id", text], generation: ["generation", whole] }))],
    step: ["step", nullable(whole)],
    messages: ["messages", messages],
    rendered: ["rendered", listOf(text)],
    dialect: ["dialect", nullable(text)],
    usage: [
      "usage",
      nullable(
        object({
          fresh: ["fresh", tokens],
          cacheRead: ["cache_read", tokens],
          cacheWrite: ["cache_write", tokens],
          output: ["output", tokens],
        }),
      ),
    ],
    model: ["model", nullable(text)],
    notice: ["notice", nullable(text)],
    outcome: ["outcome", nullable(outcome)],
    cause: ["cause", nullable(causeOfFailure)],
    reason: ["reason", nullable(oneOf("user", "interrupted", "collected"))],
    parks: ["parks", flag],
    by: ["by", nullable(text)],
    why: ["why", nullable(text)],
    prefixSha256: ["prefix_sha256", nullable(text)],
    checkpoint: ["checkpoint", checkpoint],
    at: ["at", text],
    worker: ["worker", text],
    previousHash: ["previous_hash", text],
    hash: ["hash", text],
  },
};

function keyOf(session: string, seq: number): Key {
  return { _id: numberedId(session, seq), session };
}

export function logStore(entries: Documents<Entry>): LogStore {
  return {
    insert: (entry) => entries.insert(entry),
    get: (session, seq) => entries.get(keyOf(session, seq)),
    byKey: (session, entryKey) => entries.one({ session, entry_key: entryKey }),

    read: (session, from, count) => entries.dense((n) => keyOf(session, from + n), count),
  };
}
