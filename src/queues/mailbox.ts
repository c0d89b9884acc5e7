/**
 * The turn queue of a session: a BullMQ queue without a Worker. A turn lies in `wait` until its outcome is recorded, so
 * that a crash leaves nothing to recover; it is removed by job id, and the queue's last keys with the last turn (I10).
 */
import { isHeadfastError } from "../domain/errors.ts";
import type { SessionId } from "../domain/ids.ts";
import { limits } from "../domain/limits.ts";
import type { QueuedTurn, RefusedJob } from "../domain/ports.ts";
import { readTurnJob } from "./payloads.ts";
import type { QueueName, RawJob, Shelf } from "./shelf.ts";

export class Mailbox {
  readonly #shelf: Shelf;
  readonly #hints = new Map<SessionId, QueuedTurn>();
  readonly #queueOf: (session: SessionId) => QueueName;

  constructor(shelf: Shelf, queueOf: (session: SessionId) => QueueName) {
    this.#shelf = shelf;
    this.#queueOf = queueOf;
  }

  /** What a stay's first peek answers without asking Redis; undefined takes it back. */
  hint(session: SessionId, head: QueuedTurn | undefined): void {
    if (head === undefined) this.#hints.delete(session);
    else this.#hints.set(session, head);
  }

  async peek(session: SessionId): Promise<(QueuedTurn | RefusedJob)[]> {
    const head = this.#hints.get(session);
    this.#hints.delete(session);
    if (head !== undefined) return [head];
    return readHeads(await this.#shelf.peek(this.#queueOf(session), limits.peekMax));
  }

  async settle(session: SessionId, jobIds: readonly string[]): Promise<(QueuedTurn | RefusedJob)[]> {
    this.#hints.delete(session);
    return readHeads(await this.#shelf.remove(this.#queueOf(session), jobIds, limits.peekMax));
  }
}

/** Up to the first of a newer release, behind which this one does not look (rule 19). */
function readHeads(raw: readonly RawJob[]): (QueuedTurn | RefusedJob)[] {
  const read: (QueuedTurn | RefusedJob)[] = [];
  for (const [jobId, data] of raw) {
    try {
      read.push(readTurnJob(jobId, data));
    } catch (error) {
      if (read.length === 0 || !isHeadfastError(error, "version_ahead")) throw error;
      break;
    }
  }
  return read;
}
