/** The queues in memory and those on BullMQ and Redis keep the contract of the `Queues` port. */
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import type { RefusedJob } from "../../src/domain/ports.ts";
import { encodeId, shardPrefix, turnsQueue } from "../../src/queues/names.ts";
import { readTurnJob } from "../../src/queues/payloads.ts";
import { openQueues } from "../../src/queues/queues.ts";
import { realSystem } from "../../src/system.ts";
import { memoryQueues } from "../../src/testing/memory-queues.ts";
import { quiet } from "../support/queue-records.ts";
import { keysOf } from "../support/redis.ts";
import { redisUrl, uniqueName } from "../support/services.ts";
import { type QueuesWorld, queuesSuite } from "./queues-suite.ts";

async function memoryWorld(): Promise<QueuesWorld> {
  const queues = memoryQueues({ system: realSystem });
  return {
    queues,
    held: async (session) => {
      const held = [queues.mailboxes, queues.activations.pending, queues.inbox.items];
      return held.filter((map) => map.has(session)).length;
    },
    inject: async (session, jobId, payload) => queues.inject(session, readTurnJob(jobId, JSON.stringify(payload)) as RefusedJob),
    dispose: () => queues.close(),
  };
}

/** On a server that others use too: only keys of this namespace are touched. */
async function redisWorld(shards: number): Promise<QueuesWorld> {
  const namespace = uniqueName("test");
  const queues = await openQueues({ url: redisUrl(), namespace, shards, system: realSystem, log: quiet });
  const client = new Redis(redisUrl());
  return {
    queues,
    held: async (session) => (await keysOf(client, namespace)).filter((key) => key.includes(encodeId(session))).length,
    inject: async (session, jobId, payload) => {
      const queue = new Queue(turnsQueue(session), { connection: client, prefix: shardPrefix(namespace, queues.shardOf(session)) });
      await queue.add("turn", payload, { jobId });
      await queue.close();
    },
    dispose: async () => {
      await queues.close();
      const keys = await keysOf(client, namespace);
      if (keys.length > 0) await client.del(keys);
      client.disconnect();
    },
  };
}

queuesSuite("in memory", memoryWorld);
queuesSuite("on Redis", () => redisWorld(1));
