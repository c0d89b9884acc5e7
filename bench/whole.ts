/**
 * The whole path: a host sends, MongoDB acknowledges, a worker runs an empty bot, the outcome is recorded. Beside it, in the
 * same round, plain BullMQ that makes the same two durable writes: one before the job is added, one in the handler.
 */
import { Queue, Worker } from "bullmq";
import { Redis } from "ioredis";
import { MongoClient } from "mongodb";
import { anthropicDialect, defineBot, Headfast, type Model } from "../src/index.ts";

export interface Shape {
  sessions: number;
  turns: number;
  /** The ratio of rates that is to be reached. */
  bar: number;
}

export interface Compared {
  /** Median of the rounds' ratios, ours to plain BullMQ's. */
  ratio: number;
  bar: number;
  /** Turns a second, each round. */
  ours: number[];
  plain: number[];
  /** Keys that our namespace has in Redis when all sessions are idle. */
  keysLeft: number;
}

const inFlight = 64;

/** Answers at once: what is measured is everything but the model. */
const emptyModel: Model = {
  name: "empty",
  dialect: anthropicDialect,
  maxTokens: 1,
  limitKey: "empty",
  call: async () => ({
    message: { role: "assistant", text: "ok", toolCalls: [] },
    usage: { fresh: null, cacheRead: null, cacheWrite: null, output: null },
  }),
};

export async function compareWhole(
  redis: string,
  mongo: string,
  shape: Shape,
  rounds: number,
  tell: (line: string) => void,
): Promise<Compared> {
  const ours: number[] = [];
  const plain: number[] = [];
  let keysLeft = 0;
  for (let round = 0; round < rounds; round += 1) {
    const mine = await runOurs(redis, mongo, shape);
    ours.push(mine.rate);
    keysLeft = Math.max(keysLeft, mine.keysLeft);
    plain.push(await runPlain(redis, mongo, shape));
    tell(
      `  ${shape.sessions}x${shape.turns} round ${round + 1}: ours ${Math.round(mine.rate)}/s, plain ${Math.round(plain[round] ?? 0)}/s, ratio ${(mine.rate / (plain[round] ?? 1)).toFixed(2)}`,
    );
  }
  const ratios = ours.map((rate, i) => rate / (plain[i] ?? Number.POSITIVE_INFINITY)).sort((a, b) => a - b);
  return { ratio: ratios[Math.floor(ratios.length / 2)] ?? 0, bar: shape.bar, ours, plain, keysLeft };
}

export async function runOurs(redis: string, mongo: string, { sessions, turns }: Shape): Promise<{ rate: number; keysLeft: number }> {
  const namespace = `bench-${Date.now()}`;
  let ended = 0;
  let allEnded = (): void => undefined;
  const done = new Promise<void>((resolve) => {
    allEnded = resolve;
  });
  const bot = defineBot({ name: "bench", model: emptyModel });
  const hf = await Headfast.start({ bots: [bot], redis, mongo, namespace, concurrency: inFlight });
  hf.internals.queues.events = counting(hf.internals.queues.events, () => {
    ended += 1;
    if (ended === sessions * turns) allEnded();
  });
  const began = performance.now();
  await inParallel(sessions, async (n) => {
    for (let turn = 1; turn <= turns; turn += 1)
      await hf.turns.send({ bot: "bench", session: `chat:${n}`, turnId: `m${turn}`, input: `message ${turn} of a person` });
  });
  await done;
  const seconds = (performance.now() - began) / 1000;
  await hf.close();
  const keysLeft = await countKeys(redis, namespace);
  await dropDatabase(mongo, namespace);
  return { rate: (sessions * turns) / seconds, keysLeft };
}

/** Counts final events where they are published: the worker is in this process. */
function counting(events: Headfast["internals"]["queues"]["events"], onEnd: () => void): Headfast["internals"]["queues"]["events"] {
  const publish = events.publish.bind(events);
  events.publish = (event) => {
    publish(event);
    if (event.type === "turn.done" || event.type === "turn.dead") onEnd();
  };
  return events;
}

export async function runPlain(redis: string, mongo: string, { sessions, turns }: Shape): Promise<number> {
  const name = `plain-${Date.now()}`;
  const client = await new MongoClient(mongo).connect();
  const collection = (kind: string) => client.db(name).collection<{ _id: string }>(kind, { writeConcern: { w: "majority" } });
  const connection = new Redis(redis, { maxRetriesPerRequest: null });
  const blocking = connection.duplicate();
  const queue = new Queue(name, { connection });
  let ended = 0;
  let allEnded = (): void => undefined;
  const done = new Promise<void>((resolve) => {
    allEnded = resolve;
  });
  const worker = new Worker(
    name,
    async (job) => {
      await collection("outcomes").insertOne({ _id: job.id as string, ...{ text: "ok", input: job.data.input } });
      ended += 1;
      if (ended === sessions * turns) allEnded();
    },
    { connection: blocking, concurrency: inFlight, removeOnComplete: { count: 0 } },
  );
  await worker.waitUntilReady();
  const began = performance.now();
  await inParallel(sessions, async (n) => {
    for (let turn = 1; turn <= turns; turn += 1) {
      const id = `chat-${n}-m${turn}`;
      const input = `message ${turn} of a person`;
      await collection("turns").insertOne({ _id: id, ...{ input, session: `chat:${n}` } });
      await queue.add("turn", { input, session: `chat:${n}` }, { jobId: id });
    }
  });
  await done;
  const seconds = (performance.now() - began) / 1000;
  await worker.close();
  await queue.obliterate({ force: true });
  await queue.close();
  connection.disconnect();
  blocking.disconnect();
  await client.db(name).dropDatabase();
  await client.close();
  return (sessions * turns) / seconds;
}

/** Runs `work` for 0 … count - 1, `inFlight` at a time. */
async function inParallel(count: number, work: (n: number) => Promise<void>): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: Math.min(inFlight, count) }, async () => {
      for (let n = next++; n < count; n = next++) await work(n);
    }),
  );
}

async function countKeys(url: string, namespace: string): Promise<number> {
  const client = new Redis(url);
  let keys = 0;
  let cursor = "0";
  const found: string[] = [];
  do {
    const [next, page] = await client.scan(cursor, "MATCH", `*${namespace}*`, "COUNT", 1_000);
    cursor = next;
    // The shard's own queues have a few fixed keys; a session's would carry its id.
    found.push(...page);
    keys += page.filter((key) => key.includes("chat")).length;
  } while (cursor !== "0");
  client.disconnect();
  return keys;
}

async function dropDatabase(mongo: string, name: string): Promise<void> {
  const client = await new MongoClient(mongo).connect();
  await client.db(name).dropDatabase();
  await client.close();
}
