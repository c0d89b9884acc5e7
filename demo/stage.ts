/** What the acts play on: services, a Memory Repository, worker processes, a host. Closed in reverse, whatever happened. */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { type Db, MongoClient } from "mongodb";
import { findOrStart, type Services } from "../services/launcher.ts";
import { Headfast } from "../src/index.ts";
import { Evidence } from "./evidence.ts";
import { prepareMemory } from "./memory.ts";
import type { Options } from "./options.ts";
import { Signals } from "./signals.ts";
import { Workers } from "./workers.ts";

export const model = "claude-sonnet-5";
export const twinSession = "slack:C7:twin";
/** Sessions that one worker runs at the same time: six sessions that are held at once need both workers. */
export const concurrency = 3;

export interface Stage {
  namespace: string;
  memory: string;
  /** Where the raw bodies lie. */
  records: string;
  services: Services;
  host: Headfast;
  evidence: Evidence;
  signals: Signals;
  workers: Workers;
  /** Takes everything out of the Redis that the demo uses; on one that was found, everything of the demo's. */
  emptyRedis(): Promise<{ command: string; removed: number; left: number }>;
  close(): Promise<void>;
}

/** Opens everything, or nothing: what was opened before a failure is closed again. */
export async function openStage(options: Options, say: (line: string) => void): Promise<Stage> {
  const undo: (() => Promise<unknown>)[] = [];
  const close = async (): Promise<void> => {
    // Each step is taken, whatever became of the one before: a server may be gone.
    for (const step of undo.splice(0).reverse())
      await step().catch((error: unknown) => say(`  while closing: ${error instanceof Error ? error.message : error}`));
  };
  try {
    return { ...(await openParts(options, say, undo)), close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function openParts(options: Options, say: (line: string) => void, undo: (() => Promise<unknown>)[]): Promise<Omit<Stage, "close">> {
  const folder = await temporaryFolder(undo);
  const [memory, records] = [join(folder, "memory"), join(folder, "records")];
  mkdirSync(records);
  const origin = await prepareMemory(memory, options.memory);
  say(`  Memory Repository: ${origin}`);
  const services = await findOrStart({ log: (line) => say(`  ${line}`) });
  undo.push(() => services.stop());
  const namespace = `demo-${randomBytes(4).toString("hex")}`;
  const [redis, db] = await openClients(services, namespace, undo);
  const urls = { redis: services.redis.url, mongo: services.mongo.url, namespace };
  const workers = new Workers({ ...urls, folder: records, memory, concurrency, model, twin: twinSession });
  const host = await Headfast.connect(urls);
  undo.push(() => host.close());
  undo.push(() => workers.stop());
  await Promise.all(["one", "two"].map((name) => workers.start(name)));
  say(`  workers ${workers.names.join(" and ")} take work, ${concurrency} sessions at a time each`);
  say(`  what the model gets is written down in ${records}`);
  const signals = new Signals(records);
  return {
    namespace,
    memory,
    records,
    services,
    host,
    signals,
    workers,
    evidence: new Evidence(db, redis),
    emptyRedis: () => emptyRedis(redis, services, namespace),
  };
}

/** Removed with the demo: by a shell that outlives it for a moment, should the demo be killed outright. */
async function temporaryFolder(undo: (() => Promise<unknown>)[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "headfast-demo-"));
  const heir = spawn("sh", ["-c", 'cat >/dev/null; sleep 2; rm -rf -- "$1"', "sh", folder], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  heir.unref();
  undo.push(async () => {
    heir.kill("SIGKILL");
    await rm(folder, { recursive: true, force: true, maxRetries: 3 });
  });
  return folder;
}

async function openClients(services: Services, namespace: string, undo: (() => Promise<unknown>)[]): Promise<[Redis, Db]> {
  const redis = new Redis(services.redis.url, { lazyConnect: true });
  await redis.connect();
  undo.push(async () => redis.disconnect());
  const client = await new MongoClient(services.mongo.url, { serverSelectionTimeoutMS: 5_000 }).connect();
  undo.push(() => client.close());
  const db = client.db(namespace);
  // Servers that were found go on without a trace of the demo.
  undo.push(() => db.dropDatabase());
  undo.push(() => removeKeys(redis, namespace));
  return [redis, db];
}

async function emptyRedis(
  redis: Redis,
  services: Services,
  namespace: string,
): Promise<{ command: string; removed: number; left: number }> {
  // A container of this repository's compose file may hold more than the demo's keys: it counts as found.
  const ours = services.redis.started && services.redis.origin !== "docker compose";
  if (!ours)
    return {
      command: `DEL of every key of ${namespace} (a server that was found is not emptied)`,
      removed: await removeKeys(redis, namespace),
      left: 0,
    };
  const removed = await redis.dbsize();
  const answers = await redis.multi().flushall().dbsize().exec();
  return { command: "DBSIZE; MULTI, FLUSHALL, DBSIZE, EXEC", removed, left: Number(answers?.[1]?.[1]) };
}

async function removeKeys(redis: Redis, namespace: string): Promise<number> {
  let removed = 0;
  for await (const page of redis.scanStream({ match: `*${namespace}:*`, count: 500 }) as AsyncIterable<string[]>) {
    if (page.length > 0) removed += await redis.del(page);
  }
  return removed;
}
