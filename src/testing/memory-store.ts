/**
 * The whole `Store` in memory, as a replica set whose answers can be lost and whose primary can be lost, for tests and
 * the simulator. Each operation takes effect synchronously within the call, before anything is awaited, so whoever
 * wraps the calls decides how they interleave. Values given out are frozen and shared.
 */
import { checkId, numberedId } from "../domain/ids.ts";
import type { JournalStore, LogStore, NoteStore, ObservationStore, Store } from "../domain/ports.ts";
import {
  type Entry,
  type ManifestEntry,
  type Note,
  type Observation,
  type Ownership,
  recordVersion,
  type Turn,
  type WriteIntent,
} from "../domain/records.ts";
import { checkOwner, memoryOwners } from "./memory-owners.ts";
import { MemoryReplica, type OperationMode } from "./memory-replica.ts";
import type { MemoryTable } from "./memory-table.ts";
import { memoryTurns, turnIdentity } from "./memory-turns.ts";

export type { OperationMode } from "./memory-replica.ts";

export interface MemoryStore extends Store {
  /** Holds for the next operation, then falls back to `ack`. */
  mode: OperationMode;
  /** Replication catches up: all that the primary has now has a majority. */
  commitAll(): void;
  /** The primary is lost: what had no majority never was. */
  failover(): void;
  /** What the majority has, oldest first; for checkers. */
  contents(): {
    ownership: Ownership[];
    turns: Turn[];
    entries: Entry[];
    notes: Note[];
    observations: Observation[];
    intents: WriteIntent[];
  };
}

/** An empty store. Unlike MongoDB it knows no limit of size. */
export function memoryStore(): MemoryStore {
  const replica = new MemoryReplica();
  const owners = replica.table<Ownership>();
  const turns = replica.table<Turn>(turnIdentity);
  const entries = replica.table<Entry>((entry) => entryIdentity(entry.session, entry.entryKey));
  const notes = replica.table<Note>();
  const observations = replica.table<Observation>();
  const intents = replica.table<WriteIntent>();
  return {
    get mode() {
      return replica.mode;
    },
    set mode(mode) {
      replica.mode = mode;
    },
    commitAll: () => replica.commitAll(),
    failover: () => replica.failover(),
    contents: () => ({
      ownership: owners.all(),
      turns: turns.all(),
      entries: entries.all(),
      notes: notes.all(),
      observations: observations.all(),
      intents: intents.all(),
    }),
    ownership: memoryOwners(replica, owners),
    turns: memoryTurns(replica, turns),
    log: memoryLog(replica, entries),
    notes: memoryNotes(replica, notes),
    observations: memoryObservations(replica, observations),
    ...memoryTexts(replica),
    journal: memoryJournal(replica, intents),
    close: async () => replica.close(),
  };
}

function entryIdentity(session: string, entryKey: string): string {
  return JSON.stringify([session, entryKey]);
}

function memoryLog(replica: MemoryReplica, entries: MemoryTable<Entry>): LogStore {
  const at = (session: string) => (seq: number) => entries.read(numberedId(session, seq));
  return {
    async insert(entry) {
      checkId("session", entry.session);
      return replica.insert(() => entries.insert(numberedId(entry.session, entry.seq), entry));
    },
    get: (session, seq) => replica.read(() => at(session)(seq)),
    byKey: (session, entryKey) => replica.read(() => entries.readSecond(entryIdentity(session, entryKey))),
    read: (session, from, count) => replica.read(() => dense(from, from + count, at(session))),
  };
}

function memoryNotes(replica: MemoryReplica, notes: MemoryTable<Note>): NoteStore {
  return {
    async insert(note) {
      checkId("session", note.session);
      return replica.insert(() => notes.insert(numberedId(note.session, note.number), note));
    },
    get: (session, number) => replica.read(() => notes.read(numberedId(session, number))),
  };
}

function memoryObservations(replica: MemoryReplica, observations: MemoryTable<Observation>): ObservationStore {
  return {
    get: (session) => replica.read(() => observations.read(session)),
    async baseline(session, bot, ownerEpoch, heard, at) {
      const fresh: Observation = {
        v: recordVersion,
        session,
        bot,
        baseline: heard,
        baselineEpoch: ownerEpoch,
        pending: null,
        lookedAt: at,
      };
      checkOwner(fresh);
      const earlier = (old: Observation): boolean => old.baselineEpoch < ownerEpoch;
      return replica.settled(() => {
        if (!observations.insert(session, fresh)) observations.update(session, earlier, () => fresh);
        return observations.onPrimary(session);
      });
    },
    project(session, ownerEpoch, pending, at) {
      const same = (old: Observation): boolean => old.baselineEpoch === ownerEpoch;
      return replica.write(() => observations.update(session, same, () => ({ pending, lookedAt: at })));
    },
  };
}

function memoryJournal(replica: MemoryReplica, intents: MemoryTable<WriteIntent>): JournalStore {
  const id = (session: string, callId: string, index: number): string => JSON.stringify([session, callId, index]);
  return {
    async insert(intent) {
      checkId("session", intent.session);
      return replica.insert(() => intents.insert(id(intent.session, intent.callId, intent.index), intent));
    },
    get: (session, callId, index) => replica.read(() => intents.read(id(session, callId, index))),
    ofCall: (session, callId) => replica.read(() => dense(0, Infinity, (index) => intents.read(id(session, callId, index)))),
  };
}

/** What is written once under a name or a hash. */
function memoryTexts(replica: MemoryReplica): Pick<Store, "states" | "parts" | "settings"> {
  const states = replica.table<readonly ManifestEntry[]>();
  const parts = replica.table<string>();
  const settings = replica.table<string>();
  return {
    states: {
      put: (id, manifest) => replica.insert(() => states.insert(id, manifest)),
      get: (id) => replica.read(() => states.read(id)?.slice()),
    },
    parts: {
      put: (sha256, text) => replica.insert(() => parts.insert(sha256, text)),
      get: (sha256) => replica.read(() => parts.read(sha256)),
    },
    settings: {
      once: (name, value) =>
        replica.settled(() => {
          settings.insert(name, value);
          return settings.onPrimary(name);
        }),
    },
  };
}

/** What is found from `from` on, up to the first hole or to `end`. */
function dense<T>(from: number, end: number, look: (n: number) => T | undefined): T[] {
  const found: T[] = [];
  for (let n = from; n < end; n += 1) {
    const one = look(n);
    if (one === undefined) break;
    found.push(one);
  }
  return found;
}
