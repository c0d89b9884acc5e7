/** Dead letters as BullMQ jobs, one queue per shard, for tools that look there. The log is the truth. */
import type { SessionId, TurnId } from "../domain/ids.ts";
import { limits } from "../domain/limits.ts";
import type { Letter, LetterQueue, RefusedJob } from "../domain/ports.ts";
import type { Adder } from "./adder.ts";
import { deadLettersQueue, letterJobId, refusedJobId } from "./names.ts";
import { letterJob, refusedJob, schemaVersion } from "./payloads.ts";
import type { QueueName, Shelf } from "./shelf.ts";

export class RedisLetters implements LetterQueue {
  readonly #shelf: Shelf;
  readonly #adder: Adder;
  readonly #prefixes: readonly string[];
  readonly #prefixOf: (session: SessionId) => string;

  constructor(shelf: Shelf, adder: Adder, prefixes: readonly string[], prefixOf: (session: SessionId) => string) {
    this.#shelf = shelf;
    this.#adder = adder;
    this.#prefixes = prefixes;
    this.#prefixOf = prefixOf;
  }

  async put(letter: Letter): Promise<void> {
    const { session, turnId, generation, payload } = letter;
    const data = { schema_version: schemaVersion, session, turn_id: turnId, generation, payload };
    await this.#add(session, letterJob, letterJobId(session, turnId, generation), data);
  }

  async remove(session: SessionId, turnId: TurnId, generation: number): Promise<void> {
    await this.#shelf.remove(queueOf(this.#prefixOf(session)), [letterJobId(session, turnId, generation)], 0);
  }

  async putRefused(session: SessionId, job: RefusedJob): Promise<void> {
    const data = { schema_version: schemaVersion, session, job_id: job.jobId, refused: job.refused, raw: job.raw };
    await this.#add(session, refusedJob, refusedJobId(session, job.jobId), data);
  }

  /** Oldest first within a shard. */
  async list(limit: number): Promise<unknown[]> {
    const found: unknown[] = [];
    for (const prefix of this.#prefixes) {
      const left = Math.min(limit, limits.listMax) - found.length;
      if (left <= 0) break;
      for (const [, data] of await this.#shelf.peek(queueOf(prefix), left)) found.push(JSON.parse(data));
    }
    return found;
  }

  async #add(session: SessionId, name: string, jobId: string, data: unknown): Promise<void> {
    await this.#adder.add("writing a letter", [{ ...queueOf(this.#prefixOf(session)), name, jobId, data: JSON.stringify(data) }]);
  }
}

function queueOf(prefix: string): QueueName {
  return { prefix, queue: deadLettersQueue };
}
