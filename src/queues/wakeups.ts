/** Wake-ups seen from outside: is a session's activation known to BullMQ, wake it early, mend a lost one. */
import { Queue } from "bullmq";
import type { SessionId } from "../domain/ids.ts";
import { limits } from "../domain/limits.ts";
import type { RedisLink } from "./connection.ts";
import { activationsQueue, encodeId } from "./names.ts";

const alive = new Set(["waiting", "active", "delayed", "prioritized"]);
/** BullMQ's code for "not in the state you think". */
const notInState = -3;

export class WakeUps {
  readonly #link: RedisLink;
  readonly #queues: readonly Queue[];
  readonly #shardOf: (session: SessionId) => number;

  constructor(link: RedisLink, prefixes: readonly string[], shardOf: (session: SessionId) => number) {
    this.#link = link;
    this.#shardOf = shardOf;
    this.#queues = prefixes.map((prefix) => {
      const queue = new Queue(activationsQueue, {
        connection: link.client,
        prefix,
        skipWaitingForReady: true,
        skipVersionCheck: true,
        skipMetasUpdate: true,
      });
      queue.on("error", () => undefined); // the link tells of its connection
      return queue;
    });
    link.onReady(() => void this.#boundEvents());
  }

  /** Ends the delay of a session's activation, if it has one. */
  async promote(session: SessionId): Promise<void> {
    await this.#link.run("waking a session early", async () => {
      const queue = this.#queue(session);
      const job = await queue.getJob((await queue.getDeduplicationJobId(encodeId(session))) ?? "");
      await job?.promote().catch(unlessNotInState);
    });
  }

  /** True if an activation of the session will run; a key that stands for none is taken away, so that adding works. */
  async known(session: SessionId): Promise<boolean> {
    return this.#link.run("looking for an activation", async () => {
      const queue = this.#queue(session);
      const id = encodeId(session);
      const job = await queue.getDeduplicationJobId(id);
      if (job === null) return false;
      if (alive.has(await queue.getJobState(job))) return true;
      await queue.removeDeduplicationKey(id);
      return false;
    });
  }

  #queue(session: SessionId): Queue {
    return this.#queues[this.#shardOf(session)] as Queue;
  }

  /** Nothing of ours reads the event streams of a shard's queues: they are kept short. */
  async #boundEvents(): Promise<void> {
    await this.#link
      .run("bounding event streams", async (client) => {
        for (const queue of this.#queues) await client.hset(queue.toKey("meta"), "opts.maxLenEvents", limits.queueEventsMax);
      })
      .catch(() => undefined); // the next connect tries again
  }
}

function unlessNotInState(error: unknown): void {
  if ((error as { code?: unknown }).code !== notInState) throw error;
}
