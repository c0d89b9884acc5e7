/** Faults that others met, as far as the queues alone can show them. Each server here is the test's own. */
import { inspect } from "node:util";
import { Redis } from "ioredis";
import { type OwnServer, ownRedis } from "../../services/launcher.ts";
import { type HeadfastError, isHeadfastError } from "../../src/domain/errors.ts";
import type { ActivationEnd, Lease } from "../../src/domain/ports.ts";
import { encodeId, turnsQueue } from "../../src/queues/names.ts";
import { openQueues, type RedisQueues } from "../../src/queues/queues.ts";
import { realSystem } from "../../src/system.ts";
import { eventually, gate, quiet, Stage, turn } from "../support/queue-records.ts";
import { RedisWorld, skippingSystem } from "../support/redis-world.ts";
import { redisUrl } from "../support/services.ts";
import { assert, suite } from "../support/suite.ts";

const long = process.env.HEADFAST_LONG === "1";
const test = suite("cases of the queues", { timeoutMs: long ? 400_000 : 90_000 });

/** Runs turns by their mailbox alone: what a session actor does with its queue, without the rest. */
class Runner {
  readonly done: string[] = [];
  readonly #queues: RedisQueues;
  readonly #turnMs: number;
  #told: () => void = () => undefined;

  constructor(queues: RedisQueues, turnMs: number) {
    this.#queues = queues;
    this.#turnMs = turnMs;
  }

  readonly handler = async ({ session, signal }: Lease): Promise<ActivationEnd> => {
    try {
      for (let heads = await this.#queues.peek(session); heads.length > 0; ) {
        const head = heads[0];
        if (head === undefined || !("turnId" in head)) throw new Error("a refused job in a test that sends none");
        await realSystem.sleep(this.#turnMs, signal);
        if (signal.aborted) return signal.reason.code === "draining" ? { kind: "handover" } : { kind: "idle" };
        const name = `${session} ${head.turnId} ${head.input}`;
        if (!this.done.includes(name)) this.done.push(name); // the log's part: an outcome once
        heads = await this.#queues.settle(session, [head.jobId]);
        this.#told();
      }
      return { kind: "idle" };
    } catch (error) {
      if (isHeadfastError(error, "queue_unavailable")) return { kind: "delay", ms: 100, reason: error.code };
      throw error;
    }
  };

  /** Resolves when so many turns are done. */
  async until(count: number): Promise<void> {
    while (this.done.length < count) {
      await new Promise<void>((resolve) => {
        this.#told = resolve;
      });
    }
  }

  of(session: string): string[] {
    return this.done.filter((name) => name.startsWith(`${session} `)).map((name) => name.slice(session.length + 1));
  }
}

function expected(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `turn-${index + 1} input ${index + 1}`);
}

test("B3: turns added at any moment around the end of an activation run in order, each with its own id and body", async () => {
  const world = new RedisWorld(redisUrl());
  const queues = await world.open();
  const turnMs = 20;
  const rounds = long ? 200 : 30;
  const running = new Runner(queues, turnMs);
  const runner = await queues.work(running.handler, { concurrency: 4 });
  for (let round = 0; round < rounds; round += 1) {
    const session = `s${round}`;
    // The last one is swept from before the end of the first turn to after the end of the activation.
    const sweep = turnMs - 4 + (round * 12) / rounds;
    const adds = [0, 5, 10, turnMs - 1, turnMs * 4 + sweep].map(async (ms, index) => {
      await realSystem.sleep(ms);
      await queues.enqueue(turn(session, index + 1));
    });
    await Promise.all(adds);
    await running.until((round + 1) * 5);
    assert.equal(running.of(session), expected(5), `round ${round}`);
  }
  await eventually("no key is left of any session", async () => (await world.keys("~s")).length === 0);
  await runner.close(1_000);
  await world.dispose();
});

test("B7: after Redis was killed, its blocked clients unblocked with an error and all clients killed, all goes on without a restart", async () => {
  const redis = await ownRedis({ appendOnly: true, config: { appendfsync: "always" } });
  const world = new RedisWorld(redis.url);
  const unhandled: unknown[] = [];
  const note = (reason: unknown): void => void unhandled.push(reason);
  process.on("unhandledRejection", note);
  try {
    const queues = await world.open();
    let restarts = 0;
    queues.onRestart(() => {
      restarts += 1;
    });
    const running = new Runner(queues, 15);
    for (let number = 1; number <= 5; number += 1)
      for (let session = 0; session < 20; session += 1) await queues.enqueue(turn(`s${session}`, number));
    const runner = await queues.work(running.handler, { concurrency: 4 });
    await running.until(20);
    await outage(redis, queues);
    await running.until(100);
    assert.is(restarts, 1);

    await unblocked(world.client, redis);
    await enqueueAll(queues, 6);
    await running.until(120);

    await world.client.call("CLIENT", "KILL", "TYPE", "normal");
    await enqueueAll(queues, 7);
    await running.until(140);
    for (let session = 0; session < 20; session += 1) assert.equal(running.of(`s${session}`), expected(7));
    await eventually("no key is left of any session", async () => (await world.keys("~s")).length === 0);
    await runner.close(1_000);
    assert.equal(unhandled, []);
  } finally {
    process.off("unhandledRejection", note);
    await world.dispose();
    await redis.stop();
  }
});

/** As a host with a reconciler behind it: what did not reach Redis is added again. */
async function enqueueAll(queues: RedisQueues, number: number): Promise<void> {
  for (let session = 0; session < 20; session += 1) {
    await eventually("a turn is enqueued", async () => {
      const error = await queues.enqueue(turn(`s${session}`, number)).catch((caught) => caught);
      if (error !== undefined && error.code !== "queue_unavailable") throw error;
      return error === undefined;
    });
  }
}

async function failureOf(call: () => Promise<unknown>): Promise<HeadfastError> {
  try {
    await call();
  } catch (error) {
    return error as HeadfastError;
  }
  throw new Error("it succeeded");
}

/** Killed mid-run, away for a while, back with its file. */
async function outage(redis: OwnServer, queues: RedisQueues): Promise<void> {
  await redis.kill("SIGKILL");
  await eventually("the loss is seen", () => !queues.connected());
  const calls = [
    () => queues.enqueue(turn("s0", 1)),
    () => queues.wake("s0"),
    () => queues.peek("s0"),
    () => queues.inbox.list("s0"),
    () => queues.promote("s0"),
  ];
  for (const call of calls) {
    const asked = performance.now();
    assert.is((await failureOf(call)).code, "queue_unavailable");
    assert.ok(performance.now() - asked < 250, "an operation waits for no outage");
  }
  queues.events.signal("s0");
  await realSystem.sleep(long ? 10_000 : 1_500);
  await redis.restart();
  await eventually("connected again", () => queues.connected());
}

/** Every blocked client is woken with an error, as an operator or a failover does it. */
async function unblocked(client: Redis, redis: OwnServer): Promise<void> {
  const other = new Redis(redis.url);
  await eventually("a worker is blocked", async () => /cmd=bzpopmin/.test(String(await other.client("LIST"))));
  const blocked = String(await other.client("LIST"))
    .split("\n")
    .filter((line) => line.includes("cmd=bzpopmin"))
    .map((line) => /^id=(\d+)/.exec(line)?.[1]);
  for (const id of blocked) await other.call("CLIENT", "UNBLOCK", id as string, "ERROR");
  other.disconnect();
  await client.ping();
}

test("a Redis that is lost whole is told, and repair rebuilds what the store says is open", async () => {
  const redis = await ownRedis();
  const world = new RedisWorld(redis.url);
  try {
    const queues = await world.open();
    const told = gate();
    queues.onRestart(() => told.open());
    const turns = [1, 2, 3].map((number) => turn("s", number));
    for (const one of turns) await queues.enqueue(one);
    await redis.kill("SIGKILL");
    await redis.restart();
    await told.promise;
    assert.equal(await queues.peek("s"), []);
    assert.equal(await queues.repair("s", turns), { turns: 3, activations: 1 });
    const stage = new Stage();
    const runner = await queues.work(stage.handler, { concurrency: 1 });
    await stage.ended(1);
    assert.is((await queues.peek("s")).length, 3);
    await runner.close(1_000);
  } finally {
    await world.dispose();
    await redis.stop();
  }
});

test("a Redis that is away at the start is gone on without; sending rejects at once; when it comes, all goes on", async () => {
  const redis = await ownRedis();
  const { url } = redis;
  await redis.kill("SIGKILL");
  const queues = await openQueues({ url, namespace: "late", shards: 1, system: realSystem, log: quiet });
  try {
    assert.is(queues.connected(), false);
    const error = await queues.enqueue(turn("s", 1)).catch((caught) => caught);
    assert.is(error.code, "queue_unavailable");
    const stage = new Stage();
    const runner = await queues.work(stage.handler, { concurrency: 1 });
    await redis.restart();
    await eventually("connected", () => queues.connected());
    await queues.enqueue(turn("s", 1));
    await stage.ended(1);
    await runner.close(1_000);
  } finally {
    await queues.close();
    await redis.stop();
  }
});

test("a worker closes within its drain time while Redis is away", async () => {
  const redis = await ownRedis();
  const queues = await openQueues({ url: redis.url, namespace: "away", shards: 2, system: realSystem, log: quiet });
  try {
    const stage = new Stage(async ({ signal }) => {
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
      return { kind: "handover" };
    });
    await queues.wake("s");
    const runner = await queues.work(stage.handler, { concurrency: 2 });
    const observing = await queues.observations.work(["ada"], async () => undefined);
    await stage.began(1);
    await redis.kill("SIGKILL");
    const asked = performance.now();
    await runner.close(200);
    assert.ok(performance.now() - asked < 6_000, `${performance.now() - asked} ms`);
    await observing.close();
  } finally {
    await queues.close();
    await redis.stop();
  }
});

test("B8: an evicting policy, an old clock: refused at the start, by name", async () => {
  for (const policy of ["allkeys-lru", "volatile-lru", "allkeys-random"]) {
    const redis = await ownRedis({ config: { "maxmemory-policy": policy } });
    const error = await openQueues({ url: redis.url, namespace: "b8", shards: 1, system: realSystem, log: quiet }).catch(
      (caught) => caught,
    );
    assert.is(error.code, "eviction_policy");
    assert.match(error.message, new RegExp(policy));
    await redis.stop();
  }
});

test("a clock that is 5 s off is refused, one that is 4 s off is not, and Redis' time counts", async () => {
  for (const [ahead, refused] of [
    [6_000, true],
    [-6_000, true],
    [4_000, false],
  ] as const) {
    const system = { ...skippingSystem(), now: () => realSystem.now() + ahead };
    const opened = await openQueues({ url: redisUrl(), namespace: "clock", shards: 1, system, log: quiet }).catch((caught) => caught);
    if (refused) assert.is(opened.code, "clock_skew");
    else {
      assert.ok(Math.abs(opened.now() - realSystem.now()) < 1_000);
      await opened.close();
    }
  }
});

test("B8: a full Redis is an outage, not a loss: queue_unavailable, and all goes on when there is room", async () => {
  const redis = await ownRedis({ config: { maxmemory: "20mb" } });
  const world = new RedisWorld(redis.url);
  try {
    const queues = await world.open();
    await queues.enqueue(turn("s", 1));
    let filled = 0;
    const full = async (): Promise<boolean> => {
      const reply = await world.client.set(`fill:${filled}`, "x".repeat(100_000)).catch((error: Error) => error.message);
      filled += 1;
      return reply !== "OK";
    };
    while (!(await full()));
    await world.client.config("SET", "maxmemory", "15mb"); // and no byte is free by chance
    const calls = [
      () => queues.enqueue(turn("s", 2)),
      () => queues.inbox.publish("s", { id: "notice", text: "a secret" }),
      () => queues.observations.request("ada", "test"),
    ];
    for (const call of calls) {
      const error = await failureOf(call);
      assert.equal([error.code, error.data], ["queue_unavailable", { reply: "OOM" }]);
      assert.not.match(inspect(error, { depth: 9 }), /secret/, "what was sent does not hang on the error");
    }
    assert.is((await queues.peek("s")).length, 1);
    await world.client.config("SET", "maxmemory", "20mb");
    await world.client.del(Array.from({ length: filled }, (_, index) => `fill:${index}`));
    await queues.enqueue(turn("s", 2));
    const running = new Runner(queues, 0);
    const runner = await queues.work(running.handler, { concurrency: 1 });
    await running.until(2);
    assert.equal(running.of("s"), expected(2));
    await runner.close(1_000);
  } finally {
    await world.dispose();
    await redis.stop();
  }
});

test("B9: ids that BullMQ itself refuses or confuses have names of their own, and none is an integer", async () => {
  const ids = [
    "tg:42",
    "-1001234567",
    "123456",
    "0",
    "a:b:c:d",
    "x".repeat(2_048),
    "😀\n",
    "../x",
    "__proto__",
    " ",
    "~",
    "%",
    "{",
    "日本",
  ];
  const names = ids.map(encodeId);
  assert.is(new Set(names).size, ids.length);
  for (const name of [...names, ...ids.map(turnsQueue)]) {
    assert.not.match(name, /[:{}*?[\]\s]/);
    assert.ok(Number.isNaN(Number(name)));
  }
  assert.is(encodeId("tg:42"), "~tg%3A42");
  assert.is(encodeId("it's (a) ~b*!"), "~it%27s%20%28a%29%20%7Eb%2A%21");
});

test.run();
