/**
 * How fast the queue layer alone drains: one worker, concurrency 64, a handler that peeks, runs nothing and settles;
 * against plain BullMQ (one queue, one Worker, concurrency 64, the same payloads) in the same round on the same Redis.
 * The order alternates from round to round; what counts is the median of the ratios of their rates.
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Queue, Worker } from "bullmq";
import { Redis } from "ioredis";
import type { ActivationEnd, Lease } from "../src/domain/ports.ts";
import type { Turn } from "../src/domain/records.ts";
import { turnData } from "../src/queues/payloads.ts";
import { openQueues, type RedisQueues } from "../src/queues/queues.ts";
import { realSystem } from "../src/system.ts";
import { turnOf } from "./turns.ts";

export interface Shape {
  sessions: number;
  turns: number;
  /** The least ratio that is good enough. */
  bar: number;
}

export const shapes: readonly Shape[] = [
  { sessions: 1_000, turns: 10, bar: 2.5 },
  { sessions: 10, turns: 1_000, bar: 2.0 },
  { sessions: 10_000, turns: 1, bar: 0.67 },
];

export interface ShapeResult {
  /** Median of the rounds' ratios: our rate over plain BullMQ's. */
  ratio: number;
  ratios: number[];
  /** Turns per second, medians. */
  rate: number;
  plainRate: number;
  bar: number;
}

const concurrency = 64;
const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

/** All shapes, `rounds` rounds each, on a Redis that is emptied. Keys of the result: `1000x10` and so on. */
export async function drainBench(redisUrl: string, rounds: number, tell: (line: string) => void): Promise<Record<string, ShapeResult>> {
  const results: Record<string, ShapeResult> = {};
  await round(redisUrl, { sessions: 200, turns: 5, bar: 0 }, true); // warms the code, not counted
  await round(redisUrl, { sessions: 200, turns: 5, bar: 0 }, false);
  for (const shape of shapes) {
    const times: [ours: number, plain: number][] = [];
    for (let index = 0; index < rounds; index += 1) times.push(await round(redisUrl, shape, index % 2 === 0));
    const result = resultOf(shape, times);
    const name = `${shape.sessions}x${shape.turns}`;
    results[name] = result;
    tell(
      `drain ${name}: ${result.rate.toFixed(0)} turns/s, plain BullMQ ${result.plainRate.toFixed(0)}, ratio ${result.ratio.toFixed(2)} (bar ${shape.bar})`,
    );
  }
  return results;
}

function resultOf({ sessions, turns, bar }: Shape, times: [number, number][]): ShapeResult {
  const count = sessions * turns;
  const ratios = times.map(([ours, plain]) => plain / ours);
  const rateOf = (ms: number[]): number => (count / median(ms)) * 1_000;
  return {
    ratio: median(ratios),
    ratios,
    rate: rateOf(times.map(([ours]) => ours)),
    plainRate: rateOf(times.map(([, plain]) => plain)),
    bar,
  };
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? (sorted[middle] as number) : ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2;
}

async function round(redisUrl: string, shape: Shape, oursFirst: boolean): Promise<[ours: number, plain: number]> {
  if (oursFirst) return [await drainOurs(redisUrl, shape), await drainPlain(redisUrl, shape)];
  const plain = await drainPlain(redisUrl, shape);
  return [await drainOurs(redisUrl, shape), plain];
}

/** Milliseconds from the start of the worker until the last turn is settled. */
async function drainOurs(redisUrl: string, shape: Shape): Promise<number> {
  await emptied(redisUrl);
  const queues = await openQueues({ url: redisUrl, namespace: "bench", shards: 1, system: realSystem, log: silent });
  await inBatches(turnsOf(shape), (turn) => queues.enqueue(turn));
  const drain = drainer(queues, shape.sessions * shape.turns);
  collectGarbage();
  const started = performance.now();
  const runner = await queues.work(drain.handler, { concurrency });
  await drain.done;
  const took = performance.now() - started;
  await runner.close(1_000);
  await queues.close();
  return took;
}

function drainer(queues: RedisQueues, expected: number): { handler: (lease: Lease) => Promise<ActivationEnd>; done: Promise<void> } {
  let left = expected;
  let finish = (): void => undefined;
  const done = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const handler = async ({ session }: Lease): Promise<ActivationEnd> => {
    let heads = await queues.peek(session);
    while (heads.length > 0) {
      const settled = heads.length;
      heads = await queues.settle(
        session,
        heads.map((head) => head.jobId),
      );
      left -= settled;
    }
    if (left === 0) finish();
    return { kind: "idle" };
  };
  return { handler, done };
}

/** Milliseconds from the start of the Worker until the last job is completed. */
async function drainPlain(redisUrl: string, shape: Shape): Promise<number> {
  await emptied(redisUrl);
  const connection = new Redis(redisUrl, { maxRetriesPerRequest: null });
  const queue = new Queue("plain", { connection });
  const data = turnsOf(shape).map((turn) => ({
    name: "turn",
    data: JSON.parse(turnData(turn)) as object,
    opts: { removeOnComplete: true },
  }));
  await inBatches(chunks(data, 500), (chunk) => queue.addBulk(chunk));
  let left = data.length;
  collectGarbage();
  const started = performance.now();
  const took = await new Promise<number>((resolve) => {
    const worker = new Worker("plain", async () => undefined, { connection, concurrency });
    worker.on("completed", () => {
      left -= 1;
      if (left === 0) void worker.close().then(() => resolve(finishedAt - started));
      finishedAt = performance.now();
    });
    let finishedAt = 0;
  });
  await queue.close();
  connection.disconnect();
  return took;
}

/** Turns as hosts send them: interleaved over the sessions. */
function turnsOf({ sessions, turns }: Shape): Turn[] {
  return Array.from({ length: sessions * turns }, (_, index) => turnOf(`slack:C${index % sessions}`, Math.floor(index / sessions) + 1));
}

async function inBatches<T>(items: readonly T[], add: (item: T) => Promise<unknown>): Promise<void> {
  for (const batch of chunks(items, 200)) await Promise.all(batch.map(add));
}

function chunks<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, index) => items.slice(index * size, (index + 1) * size));
}

/** What the sending left behind is collected before the clock starts, for both alike. */
function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
}

async function emptied(redisUrl: string): Promise<void> {
  const client = new Redis(redisUrl);
  await client.flushdb();
  client.disconnect();
}
