/**
 * Queues that have no Worker: their jobs are read where they lie and removed by id, with the queue's last keys when it
 * is empty (I10). What is asked of one shard within a tick goes in one script call: it halves what a turn costs.
 */
import type { HeadfastError } from "../domain/errors.ts";
import type { RedisLink } from "./connection.ts";
import { replyError } from "./errors.ts";
import { shelfScript } from "./mailbox-scripts.ts";

/** Operations in one script call: bounds how long Redis is held, and lets it work while the answers before are read. */
const operationsAtOnce = 16;
/** How many ids one operation removes: far below what Lua can unpack. */
const removedAtOnce = 1_000;

/** A raw job: id and payload. */
export type RawJob = [jobId: string, data: string];

/** A queue, by its BullMQ prefix and name. */
export interface QueueName {
  prefix: string;
  queue: string;
}

interface Operation {
  wait: string;
  count: number;
  remove: readonly string[];
  resolve(jobs: RawJob[]): void;
  reject(error: Error): void;
}

type Answer = string | [moved: number, ...flat: string[]];

interface Scripted {
  headfastShelf(...args: (string | number)[]): Promise<Answer[]>;
}

export class Shelf {
  /** Jobs found delayed or prioritized, and moved to `wait`, since the start. */
  strays = 0;
  readonly #link: RedisLink;
  /** What this tick asks for, by shard prefix: a script's keys are in one slot of a cluster. */
  readonly #asked = new Map<string, Operation[]>();

  constructor(link: RedisLink) {
    this.#link = link;
    link.client.defineCommand("headfastShelf", { lua: shelfScript });
  }

  /** The oldest jobs, at most `count`. */
  peek(name: QueueName, count: number): Promise<RawJob[]> {
    return this.#ask(name, [], count);
  }

  /** Removes jobs by id, and the queue's last keys if it is empty then. Answers the oldest that are left. */
  async remove(name: QueueName, jobIds: readonly string[], count: number): Promise<RawJob[]> {
    for (let from = removedAtOnce; from < jobIds.length; from += removedAtOnce)
      await this.#ask(name, jobIds.slice(from, from + removedAtOnce), 0);
    return this.#ask(name, jobIds.slice(0, removedAtOnce), count);
  }

  #ask({ prefix, queue }: QueueName, remove: readonly string[], count: number): Promise<RawJob[]> {
    return new Promise((resolve, reject) => {
      const asked = this.#asked.get(prefix) ?? [];
      asked.push({ wait: `${prefix}:${queue}:wait`, count, remove, resolve, reject });
      this.#asked.set(prefix, asked);
      if (asked.length === operationsAtOnce) this.#send(prefix);
      else if (asked.length === 1) setImmediate(() => this.#send(prefix));
    });
  }

  #send(prefix: string): void {
    const asked = this.#asked.get(prefix);
    this.#asked.delete(prefix);
    if (asked !== undefined) void this.#call(asked);
  }

  async #call(operations: readonly Operation[]): Promise<void> {
    try {
      const answers = await this.#link.run("reading turn queues", (client) =>
        (client as unknown as Scripted).headfastShelf(operations.length, ...argumentsOf(operations)),
      );
      for (const [index, operation] of operations.entries()) this.#answer(operation, answers[index]);
    } catch (error) {
      for (const operation of operations) operation.reject(error as HeadfastError);
    }
  }

  #answer(operation: Operation, answer: Answer | undefined): void {
    if (Array.isArray(answer)) {
      this.strays += answer[0];
      operation.resolve(pairs(answer));
    } else operation.reject(replyError(`reading ${operation.wait}`, answer ?? "nothing"));
  }
}

function argumentsOf(operations: readonly Operation[]): (string | number)[] {
  const args: (string | number)[] = operations.map((operation) => operation.wait);
  for (const { count, remove } of operations) args.push(count, remove.length, ...remove);
  return args;
}

function pairs([, ...flat]: [number, ...string[]]): RawJob[] {
  const found: RawJob[] = [];
  for (let at = 0; at + 1 < flat.length; at += 2) found.push([flat[at] as string, flat[at + 1] as string]);
  return found;
}
