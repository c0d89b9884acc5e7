/**
 * The whole `Store` in memory, as a replica set whose answers can be lost and whose primary can be lost, for tests and
 * the simulator. Each operation takes effect synchronously within the call, before anything is awaited, so whoever
 * wraps the calls decides how they interleave. Values given out are frozen and shared.
 */
import { HeadfastError } from "../domain/errors.ts";
import { checkId, numberedId } from "../domain/ids.ts";
import { limits } from "../domain/limits.ts";
import type {
  JournalStore,
  LogStore,
  NoteStore,
  ObservationStore,
  OwnershipStore,
  PartsStore,
  SettingsStore,
  StateStore,
  Store,
  TurnStore,
} from "../domain/ports.ts";
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
import { MemoryTable } from "./memory-table.ts";

/**
 * What becomes of the next operation:
 * - `ack`: applied, has a majority (and with it all that was written before it), answered.
 * - `fail_before`: rejects with `store_unavailable`, not applied.
 * - `lose_answer`: applied, has a majority, rejects with `store_unavailable`.
 * - `tentative`: applied on the primary alone, rejects with `store_unavailable`; `commitAll` or the next acknowledged
 *   write gives it a majority, `failover` takes it back.
 * A read changes nothing and rejects in all but the first.
 */
export type OperationMode = "ack" | "fail_before" | "lose_answer" | "tentative";

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
  return new Memory();
}

class Memory implements MemoryStore {
  mode: OperationMode = "ack";
  #closed = false;
  readonly #owners = new MemoryTable<Ownership>();
  readonly #turns = new MemoryTable<Turn>((turn) => JSON.stringify([turn.session, turn.turnId, turn.generation]));
  /** Letters that were cleared: a late mark does not bring them back. */
  readonly #cleared = new MemoryTable<true>();
  readonly #entries = new MemoryTable<Entry>((entry) => JSON.stringify([entry.session, entry.entryKey]));
  readonly #notes = new MemoryTable<Note>();
  readonly #observations = new MemoryTable<Observation>();
  readonly #states = new MemoryTable<readonly ManifestEntry[]>();
  readonly #parts = new MemoryTable<string>();
  readonly #intents = new MemoryTable<WriteIntent>();
  readonly #settings = new MemoryTable<string>();
  readonly #tables = [
    this.#owners,
    this.#turns,
    this.#cleared,
    this.#entries,
    this.#notes,
    this.#observations,
    this.#states,
    this.#parts,
    this.#intents,
    this.#settings,
  ];

  commitAll(): void {
    for (const table of this.#tables) table.commit();
  }

  failover(): void {
    for (const table of this.#tables) table.rollback();
  }

  contents(): ReturnType<MemoryStore["contents"]> {
    return {
      ownership: this.#owners.all(),
      turns: this.#turns.all(),
      entries: this.#entries.all(),
      notes: this.#notes.all(),
      observations: this.#observations.all(),
      intents: this.#intents.all(),
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
  }

  async #read<T>(look: () => T): Promise<T> {
    if (this.#begin() !== "ack") throw unavailable("the answer was lost");
    return look();
  }

  /** `apply` says whether it changed anything: only then does the acknowledgement commit what came before it. */
  async #write(apply: () => boolean): Promise<boolean> {
    const mode = this.#begin();
    if (mode === "fail_before") throw unavailable("the connection was lost");
    const changed = apply();
    if (changed && mode !== "tentative") this.commitAll();
    if (mode !== "ack") throw unavailable("the answer was lost");
    return changed;
  }

  /** A write that answers what stands afterwards: that has a majority, whoever wrote it. */
  async #settled<T>(apply: () => void, stands: () => T | undefined): Promise<T> {
    await this.#write(() => {
      apply();
      return true;
    });
    return stands() ?? fail("what stands was written just now");
  }

  #begin(): OperationMode {
    if (this.#closed) throw new HeadfastError("closed", "the store was closed");
    const mode = this.mode;
    this.mode = "ack";
    return mode;
  }

  readonly ownership: OwnershipStore = {
    get: (session) => this.#read(() => this.#owners.read(session)),
    claim: async (fresh) => {
      checkOwner(fresh);
      return this.#settled(
        () => this.#owners.insert(fresh.session, fresh),
        () => this.#owners.onPrimary(fresh.session),
      );
    },
    freeze: async (session, guard, set) => {
      await this.#write(() =>
        this.#owners.update(
          session,
          (owner) =>
            owner.bot === guard.bot &&
            owner.ownerEpoch === guard.ownerEpoch &&
            owner.baseline === guard.from &&
            (set.personaSnapshot === undefined || owner.personaSnapshot === undefined), // I6
          () => set,
        ),
      );
    },
    rollForward: async (session, to) => {
      checkId("bot", to.bot);
      await this.#write(() =>
        this.#owners.update(
          session,
          (owner) => owner.ownerEpoch < to.ownerEpoch,
          () => ({ ...to, ...nothingFrozen }),
        ),
      );
    },
    touch: async (hints) => {
      await this.#write(() =>
        changedAny(hints, (hint) =>
          this.#owners.update(
            hint.session,
            (owner) => leads(hint, owner),
            (owner) => highest(hint, owner),
          ),
        ),
      );
    },
    list: ({ bot, activeSince, limit }) =>
      this.#read(() =>
        this.#owners
          .all()
          .filter((owner) => (bot === undefined || owner.bot === bot) && (activeSince === undefined || owner.activeAt >= activeSince))
          .sort((a, b) => b.activeAt - a.activeAt)
          .slice(0, limit),
      ),
  };

  readonly turns: TurnStore = {
    insert: async (turn) => {
      checkOwner(turn);
      checkId("turnId", turn.turnId);
      return inserted(await this.#write(() => this.#turns.insert(numberedId(turn.session, turn.number), turn)));
    },
    byNumber: (session, number) => this.#read(() => this.#turns.read(numberedId(session, number))),
    byId: (session, turnId, generation) => this.#read(() => this.#turns.readSecond(JSON.stringify([session, turnId, generation]))),
    addAttempt: (session, number, attempt, dueAt) =>
      this.#change(
        session,
        number,
        (turn) => turn.attemptsSpent === attempt.number - 1,
        (turn) => ({
          attempts: [...turn.attempts, attempt].slice(-limits.attemptsKeptMax),
          attemptsSpent: attempt.number,
          dueAt,
        }),
      ),
    setDue: (session, number, dueAt) =>
      this.#change(
        session,
        number,
        () => true,
        () => ({ dueAt }),
      ),
    addCrash: (session, number, expected, seen, charge) =>
      this.#change(
        session,
        number,
        (turn) => sameStall(turn.stallSeen, expected),
        (turn) => ({ stallSeen: seen, crashes: turn.crashes + charge }),
      ),
    setStartMark: (session, number, startMark) =>
      this.#change(
        session,
        number,
        () => true,
        () => ({ startMark }),
      ),
    setCancelMark: (session, number, cancelMark) =>
      this.#change(
        session,
        number,
        (turn) => turn.cancelMark === null,
        () => ({ cancelMark }),
      ),
    settle: async (marks) => {
      await this.#write(() =>
        changedAny(marks, ({ session, number, ...mark }) => {
          const id = numberedId(session, number);
          const letter = this.#cleared.onPrimary(id) ? null : mark.letter;
          return this.#turns.update(
            id,
            (turn) => turn.outcome === null,
            () => ({ ...mark, letter, open: null }),
          );
        }),
      );
    },
    clearLetter: async (session, number) => {
      const id = numberedId(session, number);
      await this.#write(() => {
        const known = this.#turns.update(
          id,
          () => true,
          () => ({ letter: null }),
        );
        if (known) this.#cleared.insert(id, true);
        return known;
      });
    },
    open: (shard, after, limit) => this.#read(() => page(this.#turns.all(), "open", shard, after, limit)),
    letters: (shard, after, limit) => this.#read(() => page(this.#turns.all(), "letter", shard, after, limit)),
  };

  async #change(session: string, number: number, guard: (turn: Turn) => boolean, change: (turn: Turn) => Partial<Turn>): Promise<void> {
    await this.#write(() => this.#turns.update(numberedId(session, number), guard, change));
  }

  readonly log: LogStore = {
    insert: async (entry) => {
      checkId("session", entry.session);
      return inserted(await this.#write(() => this.#entries.insert(numberedId(entry.session, entry.seq), entry)));
    },
    get: (session, seq) => this.#read(() => this.#entries.read(numberedId(session, seq))),
    byKey: (session, entryKey) => this.#read(() => this.#entries.readSecond(JSON.stringify([session, entryKey]))),
    read: (session, from, count) => this.#read(() => dense(from, from + count, (seq) => this.#entries.read(numberedId(session, seq)))),
  };

  readonly notes: NoteStore = {
    insert: async (note) => {
      checkId("session", note.session);
      return inserted(await this.#write(() => this.#notes.insert(numberedId(note.session, note.number), note)));
    },
    get: (session, number) => this.#read(() => this.#notes.read(numberedId(session, number))),
  };

  readonly observations: ObservationStore = {
    get: (session) => this.#read(() => this.#observations.read(session)),
    baseline: async (session, bot, ownerEpoch, heard, at) => {
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
      return this.#settled(
        () =>
          this.#observations.insert(session, fresh) ||
          this.#observations.update(
            session,
            (old) => old.baselineEpoch < ownerEpoch,
            () => fresh,
          ),
        () => this.#observations.onPrimary(session),
      );
    },
    project: async (session, ownerEpoch, pending, at) => {
      await this.#write(() =>
        this.#observations.update(
          session,
          (old) => old.baselineEpoch === ownerEpoch,
          () => ({ pending, lookedAt: at }),
        ),
      );
    },
  };

  readonly states: StateStore = {
    put: async (id, manifest) => void (await this.#write(() => this.#states.insert(id, manifest))),
    get: (id) => this.#read(() => this.#states.read(id)?.slice()),
  };

  readonly parts: PartsStore = {
    put: async (sha256, text) => void (await this.#write(() => this.#parts.insert(sha256, text))),
    get: (sha256) => this.#read(() => this.#parts.read(sha256)),
  };

  readonly journal: JournalStore = {
    insert: async (intent) => {
      checkId("session", intent.session);
      return inserted(await this.#write(() => this.#intents.insert(intentId(intent.session, intent.callId, intent.index), intent)));
    },
    get: (session, callId, index) => this.#read(() => this.#intents.read(intentId(session, callId, index))),
    ofCall: (session, callId) => this.#read(() => dense(0, Infinity, (index) => this.#intents.read(intentId(session, callId, index)))),
  };

  readonly settings: SettingsStore = {
    once: (name, value) =>
      this.#settled(
        () => this.#settings.insert(name, value),
        () => this.#settings.onPrimary(name),
      ),
  };
}

const nothingFrozen = {
  baseline: null,
  personaSnapshot: undefined,
  personaSnapshotAt: undefined,
  personaSha256: undefined,
  toolsSha256: undefined,
  rolePromptsSha256: undefined,
  dialect: undefined,
  prefixSha256: undefined,
};

function inserted(changed: boolean): "inserted" | "duplicate" {
  return changed ? "inserted" : "duplicate";
}

function changedAny<T>(items: readonly T[], change: (item: T) => boolean): boolean {
  return items.map(change).includes(true);
}

function intentId(session: string, callId: string, index: number): string {
  return JSON.stringify([session, callId, index]);
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

type Hint = Pick<Ownership, "lastNumber" | "lastSeq" | "activeAt">;

function leads(hint: Hint, owner: Hint): boolean {
  return hint.lastNumber > owner.lastNumber || hint.lastSeq > owner.lastSeq || hint.activeAt > owner.activeAt;
}

function highest(a: Hint, b: Hint): Hint {
  return {
    lastNumber: Math.max(a.lastNumber, b.lastNumber),
    lastSeq: Math.max(a.lastSeq, b.lastSeq),
    activeAt: Math.max(a.activeAt, b.activeAt),
  };
}

function sameStall(a: Turn["stallSeen"], b: Turn["stallSeen"]): boolean {
  return a === null || b === null ? a === b : a.job === b.job && a.count === b.count;
}

/** Up to `limit` turns after the cursor, and all that share the last one's text: a cursor never cuts between equals. */
function page(turns: readonly Turn[], field: "open" | "letter", shard: number, after: string | null, limit: number): Turn[] {
  const text = (turn: Turn): string => turn[field] ?? "";
  const rows = turns
    .filter((turn) => text(turn).startsWith(`${shard}:`) && (after === null || text(turn) > after))
    .sort((a, b) => (text(a) < text(b) ? -1 : text(a) > text(b) ? 1 : 0));
  const last = rows[limit - 1];
  return last === undefined ? rows : rows.filter((turn) => text(turn) <= text(last));
}

function checkOwner(value: { session: unknown; bot: unknown }): void {
  checkId("session", value.session);
  checkId("bot", value.bot);
}

function unavailable(reason: string): HeadfastError {
  return new HeadfastError("store_unavailable", `the in-memory store was told to fail: ${reason}`);
}

function fail(reason: string): never {
  throw new Error(`the in-memory store broke its own rule: ${reason}`);
}
