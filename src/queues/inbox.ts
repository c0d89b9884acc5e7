/** The inbox of a session: a BullMQ queue without a Worker, whose jobs wake nobody (I9). */
import type { SessionId } from "../domain/ids.ts";
import { limits } from "../domain/limits.ts";
import type { InboxItem, InboxQueue } from "../domain/ports.ts";
import type { Adder } from "./adder.ts";
import { encodeId, inboxQueue } from "./names.ts";
import { inboxData, inboxJob, readInboxItem } from "./payloads.ts";
import type { QueueName, Shelf } from "./shelf.ts";

export class RedisInbox implements InboxQueue {
  readonly #shelf: Shelf;
  readonly #adder: Adder;
  readonly #prefixOf: (session: SessionId) => string;

  constructor(shelf: Shelf, adder: Adder, prefixOf: (session: SessionId) => string) {
    this.#shelf = shelf;
    this.#adder = adder;
    this.#prefixOf = prefixOf;
  }

  async publish(session: SessionId, item: InboxItem): Promise<void> {
    const job = { ...this.#queue(session), name: inboxJob, jobId: encodeId(item.id), data: inboxData(item) };
    await this.#adder.replace("publishing to an inbox", job);
  }

  async remove(session: SessionId, ids: readonly string[]): Promise<void> {
    await this.#shelf.remove(this.#queue(session), ids.map(encodeId), 0);
  }

  async list(session: SessionId): Promise<InboxItem[]> {
    const raw = await this.#shelf.peek(this.#queue(session), limits.listMax);
    return raw.map(([, data]) => readInboxItem(data)).filter((item) => item !== undefined);
  }

  #queue(session: SessionId): QueueName {
    return { prefix: this.#prefixOf(session), queue: inboxQueue(session) };
  }
}
