/**
 * Queues that have no Worker: their jobs are read where they lie and removed by id, with the queue's last keys when it
 * is empty (I10).
 */
import type { Redis } from "ioredis";
import type { RedisLink } from "./connection.ts";
import { peekScript, scriptKeys, settleScript } from "./mailbox-scripts.ts";

/** How many ids one script call removes: far below what Lua can unpack. */
const removedAtOnce = 1_000;

/** A raw job: id and payload. */
export type RawJob = [jobId: string, data: string];

interface Scripted {
  headfastPeek(...args: (string | number)[]): Promise<[number, ...string[]]>;
  headfastSettle(...args: (string | number)[]): Promise<[number, ...string[]]>;
}

/** Reads and removes jobs of queues that have no Worker. A queue is named by its key prefix, `<prefix>:<queue>:`. */
export class Shelf {
  /** Jobs found delayed or prioritized, and moved to `wait`, since the start. */
  strays = 0;
  readonly #link: RedisLink;

  constructor(link: RedisLink) {
    this.#link = link;
    link.client.defineCommand("headfastPeek", { lua: peekScript, numberOfKeys: 4 });
    link.client.defineCommand("headfastSettle", { lua: settleScript, numberOfKeys: 4 });
  }

  /** The oldest jobs, at most `count`. */
  async peek(queue: string, count: number): Promise<RawJob[]> {
    return this.#link.run("reading a queue", async (client) => this.#pairs(await scripted(client).headfastPeek(...scriptKeys(queue), queue, count)));
  }

  /** Removes jobs by id, and the queue's last keys if it is empty then. Answers the oldest that are left. */
  async remove(queue: string, jobIds: readonly string[], count: number): Promise<RawJob[]> {
    for (let from = removedAtOnce; from < jobIds.length; from += removedAtOnce) await this.#remove(queue, jobIds.slice(from, from + removedAtOnce), 0);
    return this.#remove(queue, jobIds.slice(0, removedAtOnce), count);
  }

  #remove(queue: string, jobIds: readonly string[], count: number): Promise<RawJob[]> {
    return this.#link.run("removing from a queue", async (client) => this.#pairs(await scripted(client).headfastSettle(...scriptKeys(queue), queue, count, ...jobIds)));
  }

  #pairs([moved, ...flat]: [number, ...string[]]): RawJob[] {
    this.strays += moved;
    const pairs: RawJob[] = [];
    for (let at = 0; at + 1 < flat.length; at += 2) pairs.push([flat[at] as string, flat[at + 1] as string]);
    return pairs;
  }
}

function scripted(client: Redis): Scripted {
  return client as unknown as Scripted;
}
