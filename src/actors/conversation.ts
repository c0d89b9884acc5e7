/**
 * A worker's copy of one session: its owner, its log's end, and every recorded message as rendered. Cold, it is read in
 * batches and checked link by link; warm, one point read says whether it is current. It holds nothing that the log does
 * not: throwing it away costs reads, never bytes.
 */
import { createHash, type Hash } from "node:crypto";
import { checkChain, type Tail, tailOf } from "../domain/entry.ts";
import { HeadfastError } from "../domain/errors.ts";
import type { SessionId } from "../domain/ids.ts";
import { limits } from "../domain/limits.ts";
import { emptyTail } from "../domain/log.ts";
import type { Message } from "../domain/messages.ts";
import type { SessionHint, Store } from "../domain/ports.ts";
import type { Prefix } from "../domain/prefix.ts";
import type { Checkpoint, Entry, Ownership, Wrote } from "../domain/records.ts";

/** Results of the open step's tools that are not recorded yet: kept so that a "later" of the model runs no tool again. */
export interface PendingResults {
  number: number;
  step: number;
  messages: Message[];
  wrote: readonly Wrote[];
}

export class Conversation {
  /** Every recorded message, as the provider has it. */
  readonly rendered: string[] = [];
  owner: Ownership;
  tail: Tail;
  /** The frozen prefix of this owner epoch and baseline, once loaded. */
  prefix: Prefix | null = null;
  /** The last recorded message: its open tool calls are what a resumed turn runs, or what a closed one is closed with. */
  last: Message | null = null;
  pending: PendingResults | null = null;
  /** What a hand in the log broke: no call may be made on it, while outcomes still can be recorded. */
  broken: HeadfastError | null = null;
  /** Something was told: the inbox queue may hold what is no longer pending. */
  inboxStale = false;
  bytes = 0;
  #running: Hash = createHash("sha256");
  #length = 0;

  private constructor(owner: Ownership) {
    this.owner = owner;
    this.tail = emptyTail(owner);
  }

  static async load(store: Store, owner: Ownership): Promise<Conversation> {
    const conversation = new Conversation(owner);
    // A session that never assembled a prompt and whose log no host has touched has none: the first insert is the fence.
    if (owner.baseline !== null || owner.lastSeq > 0) await conversation.catchUp(store);
    return conversation;
  }

  get session(): SessionId {
    return this.owner.session;
  }

  get checkpoint(): Checkpoint {
    return this.tail.checkpoint;
  }

  /** The hint, if what is stored of the session lags enough for it to be worth a write; else null. */
  hintFor(hint: SessionHint): SessionHint | null {
    const { lastSeq, activeAt } = this.owner;
    if (hint.lastSeq - lastSeq < limits.hintLagMax && Math.abs(hint.activeAt - activeAt) < limits.hintLagMs) return null;
    this.owner = { ...this.owner, ...hint };
    return hint;
  }

  /** Length (UTF-16 units) and SHA-256 of the recorded messages, as a checkpoint carries them. */
  sequence(appended: readonly string[] = []): NonNullable<Checkpoint["sequence"]> {
    const hash = this.#running.copy();
    let length = this.#length;
    for (const text of appended) {
      hash.update(text).update("\n");
      length += text.length + 1;
    }
    return { length, sha256: hash.digest("hex") };
  }

  /** Reads what others appended; resolves with it. */
  async catchUp(store: Store): Promise<Entry[]> {
    const behind: Entry[] = [];
    for (;;) {
      const batch = await store.log.read(this.session, this.tail.seq + 1, this.#batchSize(behind.length));
      if (batch.length === 0) return behind;
      for (const entry of batch) this.apply(entry);
      behind.push(...batch);
    }
  }

  /** Most often there is nothing behind, or one entry: so the first read is small, unless the hint says otherwise. */
  #batchSize(read: number): number {
    if (this.owner.lastSeq > this.tail.seq) return limits.logBatchMax;
    return Math.min(limits.logBatchMax, read === 0 ? 1 : 16 * read);
  }

  /** Appends an entry that stands. `own`: built here a moment ago, on this very tail, so there is nothing to check. */
  apply(entry: Entry, own = false): void {
    if (!own) this.#check(entry);
    for (const [i, message] of entry.messages.entries()) {
      this.last = message;
      const text = entry.rendered[i] ?? "";
      this.rendered.push(text);
      this.#running.update(text).update("\n");
      this.#length += text.length + 1;
      this.bytes += 2 * text.length;
    }
    if (entry.checkpoint.ownerEpoch !== this.checkpoint.ownerEpoch || entry.checkpoint.baseline !== this.checkpoint.baseline)
      this.prefix = null;
    if (entry.kind !== "next" && entry.kind !== "discarded") this.pending = null;
    this.tail = tailOf(entry);
  }

  #check(entry: Entry): void {
    try {
      checkChain(entry, this.tail);
      const recorded = entry.checkpoint.sequence;
      const here = this.sequence(entry.rendered);
      if (entry.rendered.length !== entry.messages.length || (entry.kind === "step" && recorded?.sha256 !== here.sha256)) {
        throw new HeadfastError(
          "prefix_drift",
          `transcript of session ${JSON.stringify(this.session)}, seq ${entry.seq}: the recorded messages are not those that were sent`,
          { data: { part: "messages", seq: entry.seq } },
        );
      }
    } catch (error) {
      this.broken ??= error as HeadfastError;
    }
  }
}

/** Warm copies, the least recently used thrown away first, within `limits.warmBytesMax` in all. */
export class WarmCopies {
  readonly #copies = new Map<SessionId, Conversation>();
  #bytes = 0;
  readonly #bytesMax: number;

  constructor(bytesMax: number = limits.warmBytesMax) {
    this.#bytesMax = bytesMax;
  }

  get size(): number {
    return this.#copies.size;
  }

  /** Takes the copy out: whoever runs the session owns it, and puts it back. */
  take(session: SessionId): Conversation | undefined {
    const copy = this.#copies.get(session);
    if (copy === undefined) return undefined;
    this.#copies.delete(session);
    this.#bytes -= weigh(copy);
    return copy;
  }

  put(copy: Conversation): void {
    this.take(copy.session);
    if (copy.broken !== null) return;
    this.#copies.set(copy.session, copy);
    this.#bytes += weigh(copy);
    for (const [session] of this.#copies) {
      if (this.#bytes <= this.#bytesMax) break;
      this.take(session);
    }
  }
}

/** A session costs something even when nothing was said yet. */
function weigh(copy: Conversation): number {
  return 4_096 + copy.bytes;
}
