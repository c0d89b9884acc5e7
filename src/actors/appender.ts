/**
 * How the holder of a session appends to its log (rules 3 and 9). The log's `_id` is the fence: a holder that was
 * overtaken finds out here, and nowhere else has to.
 */
import { hasOutcome } from "../domain/checkpoint.ts";
import { buildEntry, type Draft } from "../domain/entry.ts";
import { asHeadfastError, HeadfastError } from "../domain/errors.ts";
import { limits } from "../domain/limits.ts";
import { insertEntry } from "../domain/log.ts";
import type { Lease } from "../domain/ports.ts";
import type { Entry } from "../domain/records.ts";
import type { Conversation } from "./conversation.ts";
import type { SessionWorld } from "./world.ts";

export class Appender {
  readonly #world: SessionWorld;
  readonly #lease: Lease;
  readonly #conversation: Conversation;
  readonly #number: number;

  /** `number`: of the turn that the entries are about. */
  constructor(world: SessionWorld, lease: Lease, conversation: Conversation, number: number) {
    this.#world = world;
    this.#lease = lease;
    this.#conversation = conversation;
    this.#number = number;
  }

  /**
   * Inserts behind the log's end. Fenced is not lost (rule 9): behind entries that do not concern it the same answer is
   * inserted again, with no second call. `false`: it is dropped, and the activation looks again.
   */
  async append(draft: () => Draft | Promise<Draft>): Promise<boolean> {
    const { ledger } = this.#world;
    const conversation = this.#conversation;
    const writer = ledger.system.id();
    for (let tries = 0; tries < limits.raceTriesMax; tries += 1) {
      if (hasOutcome(conversation.checkpoint, this.#number)) return false; // I4
      const entry = buildEntry(conversation.session, conversation.tail, await draft(), ledger.system, writer);
      if (await this.#insert(entry)) {
        conversation.apply(entry, true);
        return true;
      }
      this.#world.count("fenced");
      const between = await conversation.catchUp(ledger.store);
      if (between.some((other) => other.writer === writer)) return true;
      if (between.some((other) => this.concerns(other))) return false;
    }
    throw new HeadfastError("store_unavailable", `the log of session ${JSON.stringify(conversation.session)} is too busy to append to`);
  }

  /** Whether an answer that was in hand when the entry was appended is void by it. */
  concerns(entry: Entry): boolean {
    return entry.messages.length > 0 || entry.kind === "reowned" || entry.turn?.number === this.#number;
  }

  /** An outage keeps the answer in hand as long as the lease stands: the call is paid for. */
  async #insert(entry: Entry): Promise<boolean> {
    for (;;) {
      this.#lease.signal.throwIfAborted(); // on a lost lease nothing more is inserted
      try {
        return await insertEntry(this.#world.ledger, entry);
      } catch (error) {
        if (asHeadfastError(error).code !== "store_unavailable") throw error;
        this.#world.count("store_unavailable");
        await this.#world.ledger.system.sleep(limits.outageMsMin, this.#lease.signal);
      }
    }
  }
}
