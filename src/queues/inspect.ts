/** A look at a Redis server from outside, for `doctor`. Changes nothing there. */
import { Redis } from "ioredis";
import type { SessionId } from "../domain/ids.ts";
import { limits } from "../domain/limits.ts";
import type { System } from "../domain/ports.ts";
import { translated } from "./errors.ts";
import { activationsQueue, encodeId, shardOf, shardPrefix } from "./names.ts";
import { readInfo, readTime } from "./redis-facts.ts";

export interface RedisInspection {
  version: string;
  evictionPolicy: string;
  /** Append-only file on; `null` where the server does not tell. */
  appendOnly: boolean | null;
  /** Own wall clock minus Redis time, in milliseconds. */
  skewMs: number;
}

/** One connection, one try. @throws `queue_unavailable`, `configuration` */
export async function inspectRedis(url: string, system: System): Promise<RedisInspection> {
  return withClient(url, async (client) => {
    const info = await client.info();
    const asked = system.now();
    const redis = readTime(await client.time());
    const skewMs = Math.round((asked + system.now()) / 2 - redis);
    const { version, evictionPolicy } = readInfo(info);
    const aof = /^aof_enabled:(\d)/mu.exec(info)?.[1];
    return { version, evictionPolicy, appendOnly: aof === undefined ? null : aof === "1", skewMs };
  });
}

/** Of these sessions, those that Redis knows an activation of: it waits, runs or is delayed. @throws `queue_unavailable`, `configuration` */
export async function activationsKnown(
  url: string,
  deployment: { namespace: string; shards: number },
  sessions: readonly SessionId[],
): Promise<Set<SessionId>> {
  return withClient(url, async (client) => {
    const known = new Set<SessionId>();
    for (const session of sessions) {
      const queue = `${shardPrefix(deployment.namespace, shardOf(session, deployment.shards))}:${activationsQueue}`;
      const job = await client.get(`${queue}:de:${encodeId(session)}`);
      if (job !== null && (await client.exists(`${queue}:${job}`)) === 1) known.add(session);
    }
    return known;
  });
}

async function withClient<T>(url: string, work: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(url, {
    lazyConnect: true,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
    connectTimeout: limits.redisSilentMsMax,
    commandTimeout: limits.redisSilentMsMax,
  });
  let fault: Error | undefined;
  client.on("error", (error: Error) => {
    fault = error; // says more than the rejected call: which host, which errno
  });
  try {
    return await translated("looking at the Redis server", async () => {
      await client.connect().catch((error: unknown) => {
        throw fault ?? error;
      });
      return work(client);
    });
  } finally {
    client.disconnect();
  }
}
