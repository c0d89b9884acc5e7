/** A look at a Redis server from outside, for `doctor`. Changes nothing there. */
import { Redis } from "ioredis";
import type { HeadfastError } from "../domain/errors.ts";
import type { SessionId } from "../domain/ids.ts";
import { limits } from "../domain/limits.ts";
import type { System } from "../domain/ports.ts";
import { translated } from "./errors.ts";
import { activationsQueue, encodeId, shardOf, shardPrefix, turnsQueue } from "./names.ts";
import { parseJson, readActivation, readTurnJob } from "./payloads.ts";
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

/** A session that waits for a newer release. */
export interface SessionAhead {
  session: SessionId;
  /** Says which job, its version and ours. */
  message: string;
}

/**
 * Sessions whose turn queue begins with a job of a newer release, among the first `limits.listMax` of each shard that have an
 * activation. @throws `queue_unavailable`, `configuration`
 */
export async function sessionsAhead(url: string, deployment: { namespace: string; shards: number }): Promise<SessionAhead[]> {
  return withClient(url, async (client) => {
    const ahead: SessionAhead[] = [];
    for (let shard = 0; shard < deployment.shards; shard += 1) {
      const prefix = shardPrefix(deployment.namespace, shard);
      const sessions = [...(await awake(client, `${prefix}:${activationsQueue}`))];
      const found = await Promise.all(sessions.map((session) => newer(client, `${prefix}:${turnsQueue(session)}`)));
      for (const [index, session] of sessions.entries()) {
        const message = found[index];
        if (message !== undefined) ahead.push({ session, message });
      }
    }
    return ahead;
  });
}

/** Sessions that have an activation, whatever its state. */
async function awake(client: Redis, queue: string): Promise<Set<SessionId>> {
  const last = limits.listMax - 1;
  const ids = await Promise.all([
    client.lrange(`${queue}:active`, 0, last),
    client.zrange(`${queue}:delayed`, "0", `${last}`),
    client.lrange(`${queue}:wait`, 0, last),
  ]);
  const jobs = ids.flat().slice(0, limits.listMax);
  const data = await Promise.all(jobs.map((id) => client.hget(`${queue}:${id}`, "data")));
  return new Set(data.map((raw) => readActivation(parseJson(raw ?? ""))).filter((session) => session !== undefined));
}

/** What is said of a queue's oldest job where it is of a newer release. */
async function newer(client: Redis, queue: string): Promise<string | undefined> {
  const job = await client.lindex(`${queue}:wait`, -1);
  const raw = job === null ? null : await client.hget(`${queue}:${job}`, "data");
  if (job === null || raw === null) return undefined;
  try {
    readTurnJob(job, raw);
    return undefined;
  } catch (error) {
    return (error as HeadfastError).message;
  }
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
