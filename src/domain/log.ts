/**
 * The log of a session: the only thing that decides (rule 2). Its `_id` serialises all who append; a lost answer, a
 * rolled-back rival and a repeated insert are told apart by reading with a majority, never from the error (rule 3).
 */
import { initialCheckpoint } from "./checkpoint.ts";
import { buildEntry, chainStart, type Draft, type Tail, tailOf } from "./entry.ts";
import { HeadfastError } from "./errors.ts";
import type { SessionId } from "./ids.ts";
import { limits } from "./limits.ts";
import type { Ledger, Store } from "./ports.ts";
import type { Entry, Ownership } from "./records.ts";

/**
 * The last of things that are numbered densely from 1, by point reads: a hint that may lag, then doubling, then halving.
 * Resolves with undefined where there is none.
 */
export async function findLast<T>(
  probe: (n: number) => Promise<T | undefined>,
  hint: number,
): Promise<{ n: number; value: T } | undefined> {
  let low: { n: number; value: T } | undefined;
  if (hint > 0) {
    const value = await probe(hint);
    if (value !== undefined) low = { n: hint, value };
  }
  let step = 1;
  let high: number | undefined;
  for (;;) {
    const known: number = low?.n ?? 0;
    if (high !== undefined && high - known <= 1) return low;
    const n: number = high === undefined ? known + step : (high + known) >> 1;
    const value = await probe(n);
    if (value === undefined) high = n;
    else low = { n, value };
    step *= 2;
  }
}

/** The log's end, from the ownership document's hint on. */
export async function readTail(store: Store, owner: Ownership): Promise<Tail> {
  const last = await findLast((seq) => store.log.get(owner.session, seq), owner.lastSeq);
  return last === undefined ? emptyTail(owner) : tailOf(last.value);
}

export function emptyTail(owner: Pick<Ownership, "bot" | "ownerEpoch" | "baseline">): Tail {
  return { seq: 0, hash: chainStart, checkpoint: initialCheckpoint(owner) };
}

/** All entries behind a tail, in order. */
export async function readBehind(store: Store, session: SessionId, tail: Pick<Tail, "seq">): Promise<Entry[]> {
  const entries: Entry[] = [];
  for (;;) {
    const from = tail.seq + entries.length + 1;
    const batch = await store.log.read(session, from, limits.logBatchMax);
    entries.push(...batch);
    if (batch.length < limits.logBatchMax) return entries;
  }
}

/**
 * Inserts an entry under its seq. `true`: it stands, by this try or an earlier one of the same writer. `false`: another
 * entry holds its place. @throws `store_unavailable`: unknown; try again with the same entry.
 */
export async function insertEntry({ store, system }: Ledger, entry: Entry): Promise<boolean> {
  for (let tries = 0; tries < limits.raceTriesMax; tries += 1) {
    if ((await store.log.insert(entry)) === "inserted") return true;
    // E11000 proves nothing until what collided has been read with a majority (rule 3): `_id` first, then the key.
    const atSeq = await store.log.get(entry.session, entry.seq);
    if (atSeq !== undefined) return atSeq.writer === entry.writer;
    const sameKey = await store.log.byKey(entry.session, entry.entryKey);
    if (sameKey !== undefined) return sameKey.writer === entry.writer;
    await system.sleep(1 + tries); // what collided has no majority yet, or was rolled back: insert again
  }
  throw new HeadfastError("store_unavailable", `the log of session ${JSON.stringify(entry.session)} is held by an insert without majority`);
}

/**
 * What hosts and operators do (rule 7): decide on the tail, insert behind it, read again if somebody was first.
 * `decide` answers null where there is nothing (left) to append. Resolves with the entry that stands, or null.
 */
export async function appendDecided(
  ledger: Ledger,
  owner: Ownership,
  decide: (tail: Tail) => Promise<Draft | null> | Draft | null,
): Promise<Entry | null> {
  const { store, system } = ledger;
  let tail = await readTail(store, owner);
  for (let tries = 0; tries < limits.raceTriesMax; tries += 1) {
    const draft = await decide(tail);
    if (draft === null) return null;
    const entry = buildEntry(owner.session, tail, draft, system);
    if (await insertEntry(ledger, entry)) {
      await hint(ledger, entry);
      return entry;
    }
    const behind = await readBehind(store, owner.session, tail);
    const last = behind.at(-1);
    if (last !== undefined) tail = tailOf(last);
    else await system.sleep(1 + tries);
  }
  throw new HeadfastError("store_unavailable", `the log of session ${JSON.stringify(owner.session)} is too busy to append to; try again`);
}

/**
 * Tells whoever loads the session that its log is not empty: a holder trusts the hint of a session that never ran. Without
 * it at worst one model call is made for nothing: the fence stands. So an outage here fails nothing that stands already.
 */
async function hint({ store, system }: Ledger, entry: Entry): Promise<void> {
  try {
    await store.ownership.touch([
      { session: entry.session, lastNumber: entry.turn?.number ?? 0, lastSeq: entry.seq, activeAt: system.now() },
    ]);
  } catch (error) {
    if (!(error instanceof HeadfastError) || error.kind !== "later") throw error;
  }
}
