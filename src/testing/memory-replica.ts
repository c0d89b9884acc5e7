/** The replica set behind the in-memory store: what an operation's answer says, and what a fail-over takes back. */
import { HeadfastError } from "../domain/errors.ts";
import type { Inserted } from "../domain/ports.ts";
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

export class MemoryReplica {
  /** Holds for the next operation, then falls back to `ack`. */
  mode: OperationMode = "ack";
  #closed = false;
  readonly #tables: { commit(): void; rollback(): void }[] = [];

  /** A collection of its own; `secondKey` is a second unique key, of fields that never change. */
  table<T>(secondKey?: (document: T) => string): MemoryTable<T> {
    const table = new MemoryTable<T>(secondKey);
    this.#tables.push(table);
    return table;
  }

  commitAll(): void {
    for (const table of this.#tables) table.commit();
  }

  failover(): void {
    for (const table of this.#tables) table.rollback();
  }

  close(): void {
    this.#closed = true;
  }

  async read<T>(look: () => T): Promise<T> {
    if (this.#begin() !== "ack") throw unavailable("the answer was lost");
    return look();
  }

  /** `apply` says whether it changed anything: only then does the acknowledgement commit what came before it. */
  async write(apply: () => boolean): Promise<void> {
    this.#apply(apply);
  }

  async insert(apply: () => boolean): Promise<Inserted> {
    return this.#apply(apply) ? "inserted" : "duplicate";
  }

  /** A write that answers what stands then: that has a majority, whoever wrote it. */
  async settled<T>(apply: () => T | undefined): Promise<T> {
    let stands: T | undefined;
    this.#apply(() => {
      stands = apply();
      return true;
    });
    if (stands === undefined) throw new Error("the in-memory store broke its own rule: what stands was written just now");
    return stands;
  }

  #apply(apply: () => boolean): boolean {
    const mode = this.#begin();
    if (mode === "fail_before") throw unavailable("the connection was lost");
    const changed = apply();
    if (changed && mode !== "tentative") this.commitAll();
    if (mode !== "ack") throw unavailable("the answer was lost");
    return changed;
  }

  #begin(): OperationMode {
    if (this.#closed) throw new HeadfastError("closed", "the store was closed");
    const mode = this.mode;
    this.mode = "ack";
    return mode;
  }
}

function unavailable(reason: string): HeadfastError {
  return new HeadfastError("store_unavailable", `the in-memory store was told to fail: ${reason}`);
}
