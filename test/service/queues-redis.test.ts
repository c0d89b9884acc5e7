/** What holds on Redis alone: BullMQ's layout and deduplication that the queues rest on, leases, repair, takeover. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { FlowProducer } from "bullmq";
import { limits } from "../../src/domain/limits.ts";
import { PatientRedis } from "../../src/queues/connection.ts";
import { activationsQueue, encodeId, shardOf, turnJobId, turnsQueue } from "../../src/queues/names.ts";
import { eventually, gate, Stage, turn } from "../support/queue-records.ts";
import { RedisWorld, skippingSystem } from "../support/redis-world.ts";
import { redisUrl } from "../support/services.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("queues on Redis");

const within = (use: (world: RedisWorld) => Promise<void>) => async (): Promise<void> => {
  const world = new RedisWorld(redisUrl());
  try {
    await use(world);
  } finally {
    await world.dispose();
  }
};

const foreign = { schema_version: 1, turn_id: "m", bot: "ada", input: "hello" };

// ── the key layout, held to BullMQ's public API ──────────────────────────────────────────────────

test(
  "what BullMQ's Queue and FlowProducer add, peek sees; what settle removes, BullMQ no longer knows; no key is left",
  within(async (world) => {
    const queues = await world.open();
    const queue = world.turns("s");
    await queue.add("turn", { ...foreign, turn_id: "a" }, { jobId: "ja" });
    await queue.addBulk(["b", "c"].map((id) => ({ name: "turn", data: { ...foreign, turn_id: id }, opts: { jobId: `j${id}` } })));
    const flows = new FlowProducer({ connection: world.client, prefix: world.prefix });
    await flows.addBulk([{ name: "turn", queueName: turnsQueue("s"), data: { ...foreign, turn_id: "d" }, opts: { jobId: "jd" } }]);
    assert.equal(
      (await queues.peek("s")).map((head) => [head.jobId, "turnId" in head && head.turnId]),
      [
        ["ja", "a"],
        ["jb", "b"],
        ["jc", "c"],
        ["jd", "d"],
      ],
    );
    await queues.settle("s", ["ja", "jc"]);
    assert.is(await queue.getJob("ja"), undefined);
    assert.equal((await queue.getWaiting()).map((job) => job.id).sort(), ["jb", "jd"]);
    await (await queue.getJob("jb"))?.log("a line");
    await queues.settle("s", ["jb", "jd"]);
    assert.equal(await world.keys(encodeId("s")), []);
    await flows.close();
  }),
);

test(
  "our turn and our activation are ordinary jobs to BullMQ, the activation with the options of the recipe",
  within(async (world) => {
    const queues = await world.open();
    await queues.enqueue(turn("tg:42", 7, { turnId: "a:b" }));
    const job = await world.turns("tg:42").getJob(turnJobId("a:b", 0));
    assert.equal([job?.name, await job?.getState()], ["turn", "waiting"]);
    assert.equal(job?.data, { schema_version: 1, turn_id: "a:b", generation: 0, number: 7, bot: "ada", input: "input 7" });
    const id = await world.activations.getDeduplicationJobId(encodeId("tg:42"));
    const activation = await world.activations.getJob(id ?? "");
    assert.equal(activation?.data, { schema_version: 1, session: "tg:42", head: { job_id: job?.id, turn: job?.data } });
    await queues.wake("woken");
    await queues.enqueue(turn("large", 1, { input: "x".repeat(2_000) }));
    for (const session of ["woken", "large"]) {
      const without = await world.activations.getJob((await world.activations.getDeduplicationJobId(encodeId(session))) ?? "");
      assert.equal(without?.data, { schema_version: 1, session });
    }
    const { attempts, backoff, deduplication, removeOnComplete, removeOnFail, delay = 0, priority = 0 } = activation?.opts ?? {};
    assert.equal(
      { attempts, backoff, deduplication, removeOnComplete, removeOnFail, delay, priority },
      {
        attempts: 1_000_000,
        backoff: { type: "fixed", delay: 5_000, jitter: 0.5 },
        deduplication: { id: encodeId("tg:42"), keepLastIfActive: true },
        removeOnComplete: true,
        removeOnFail: true,
        delay: 0,
        priority: 0,
      },
    );
  }),
);

test(
  "jobs that are delayed, prioritized, lifo, paused or deduplicated are found, counted and leave no key",
  within(async (world) => {
    const queues = await world.open();
    const queue = world.turns("s");
    await queue.add("turn", { ...foreign, turn_id: "a" }, { jobId: "ja", delay: 3_600_000 });
    await queue.add("turn", { ...foreign, turn_id: "b" }, { jobId: "jb", priority: 5 });
    await queue.add("turn", { ...foreign, turn_id: "c" }, { jobId: "jc", lifo: true });
    await queue.pause();
    await queue.add("turn", { ...foreign, turn_id: "d" }, { jobId: "jd", deduplication: { id: "once" } });
    await world.client.lpush(queue.toKey("paused"), "je");
    await world.client.hset(queue.toKey("je"), "data", JSON.stringify({ ...foreign, turn_id: "e" }));
    assert.equal((await queues.peek("s")).map((head) => head.jobId).sort(), ["ja", "jb", "jc", "jd", "je"]);
    assert.is(queues.strays, 3);
    assert.is((await queue.getJobCounts("delayed", "prioritized")).delayed, 0);
    await queue.add("turn", { ...foreign, turn_id: "f" }, { jobId: "jf", delay: 3_600_000 });
    // Removed where it lies, before any peek has moved it.
    await queues.settle("s", ["ja", "jb", "jc", "jd", "je", "jf"]);
    assert.equal(await world.keys(encodeId("s")), []);
  }),
);

test(
  "last keys go only if nothing waits anywhere: a turn that is added delayed meanwhile is not lost",
  within(async (world) => {
    const queues = await world.open();
    await queues.enqueue(turn("s", 1));
    await world.turns("s").add("turn", { ...foreign, turn_id: "late" }, { jobId: "late", delay: 3_600_000 });
    const left = await queues.settle("s", [queues.jobId("turn-1", 0)]);
    assert.equal(
      left.map((head) => head.jobId),
      ["late"],
    );
  }),
);

test(
  "an id without a job is dropped; a queue that is broken spoils no other's answer in the same tick",
  within(async (world) => {
    const queues = await world.open();
    await queues.enqueue(turn("ghost", 1));
    await world.client.rpush(world.turns("ghost").toKey("wait"), "no-such-job");
    await world.client.set(world.turns("broken").toKey("wait"), "not a list");
    const [ghost, broken] = await Promise.allSettled([queues.peek("ghost"), queues.peek("broken")]);
    assert.equal(ghost.status === "fulfilled" && ghost.value.map((head) => head.jobId), [queues.jobId("turn-1", 0)]);
    assert.is(broken.status === "rejected" && broken.reason.code, "unexpected");
    assert.match(broken.status === "rejected" && broken.reason.cause.message, /WRONGTYPE/);
    assert.is(await world.turns("ghost").count(), 1);
  }),
);

test(
  "automatic ids, unreadable data and newer versions: refused with the reason, or waited for",
  within(async (world) => {
    const queues = await world.open();
    const queue = world.turns("s");
    await queue.add("turn", foreign);
    await queue.add("turn", { ...foreign, turn_id: "" }, { jobId: "empty" });
    await queue.add("turn", { ...foreign, input: undefined }, { jobId: "no-input" });
    await queue.add("turn", { ...foreign, generation: 1 }, { jobId: "replayed" });
    await queue.add("turn", { ...foreign, input: "x".repeat(limits.inputBytesMax + 1) }, { jobId: "huge" });
    await queue.add("turn", "text", { jobId: "text" });
    const heads = await queues.peek("s");
    const reasons = heads.map((head) => ("refused" in head ? head.refused : "accepted"));
    assert.equal(reasons.length, 6);
    for (const [index, pattern] of [
      /^job id: .*integer/,
      /^turn_id: .*empty/,
      /^input: .*missing/,
      /^generation: /,
      /^input: has more than/,
      /^data: .*object/,
    ].entries()) {
      assert.match(reasons[index] as string, pattern);
    }
    assert.equal("raw" in (heads[0] ?? {}) && JSON.parse((heads[0] as { raw: string }).raw), foreign);
    await queue.add("turn", { ...foreign, schema_version: 2 }, { jobId: "newer" });
    await queue.add("turn", { ...foreign, turn_id: "behind" }, { jobId: "behind" });
    assert.is((await queues.peek("s")).length, 6);
    const error = await queues
      .settle(
        "s",
        heads.map((head) => head.jobId),
      )
      .catch((caught) => caught);
    assert.is(error.code, "version_ahead");
    assert.equal((await queue.getWaiting()).map((job) => job.id).sort(), ["behind", "newer"]);
  }),
);

// ── deduplication as it is ───────────────────────────────────────────────────────────────────────

test(
  "de and dn: none after the end, dn while one more run is owed, kept over a delay, gone with the last run",
  within(async (world) => {
    const queues = await world.open();
    const inside = gate();
    const stage = new Stage(async (_lease, nth) => {
      if (nth === 1) await inside.promise;
      return nth === 1 ? { kind: "delay", ms: 20, reason: "test" } : { kind: "idle" };
    });
    const dedup = async (): Promise<string[]> => (await world.keys(encodeId("s"))).map((key) => key.split(":")[1] as string);
    await queues.wake("s");
    assert.equal(await dedup(), ["de"]);
    const runner = await queues.work(stage.handler, { concurrency: 1 });
    await stage.began(1);
    await queues.wake("s");
    assert.equal(await dedup(), ["de", "dn"]);
    inside.open();
    await stage.ended(3);
    await eventually("no key is left", async () => (await dedup()).length === 0);
    await runner.close(1_000);
    assert.is(stage.stays.length, 3);
  }),
);

test(
  "a ghost without data is dropped, its key with it, and the worker goes on",
  within(async (world) => {
    const queues = await world.open();
    await world.activations.add("activate", {}, { deduplication: { id: "x", keepLastIfActive: true } });
    await world.activations.add("other", { session: "s" });
    await world.activations.add("activate", { session: "foreign" });
    const stage = new Stage();
    const runner = await queues.work(stage.handler, { concurrency: 1 });
    await stage.ended(1);
    assert.equal(stage.order, ["foreign"]);
    await runner.close(1_000);
    const counts = await world.activations.getJobCounts();
    assert.is(
      Object.values(counts).reduce((sum, count) => sum + count, 0),
      0,
    );
    assert.equal(await world.keys(":de:"), []);
  }),
);

test(
  "the event stream of the activations stays short",
  within(async (world) => {
    const queues = await world.open();
    const stage = new Stage();
    const runner = await queues.work(stage.handler, { concurrency: 8 });
    for (let index = 0; index < 600; index += 100) await Promise.all(Array.from({ length: 100 }, (_, at) => queues.wake(`s${index + at}`)));
    await stage.ended(600);
    await runner.close(1_000);
    const length = await world.client.xlen(world.activations.toKey("events"));
    assert.ok(length < 400, `${length} events`);
  }),
);

// ── lost wake-ups ────────────────────────────────────────────────────────────────────────────────

test(
  "a lost wake-up is repaired: job gone, job in no list, everything gone",
  within(async (world) => {
    const queues = await world.open();
    const turns = [turn("s", 1), turn("s", 2)];
    const lose: ((job: string) => Promise<unknown>)[] = [
      (job) => world.client.del(world.activations.toKey(job), world.activations.toKey("wait")),
      (job) => world.client.lrem(world.activations.toKey("wait"), 0, job),
      async () => world.client.del(...(await world.client.keys(`${world.prefix}*`))),
    ];
    for (const [index, losing] of lose.entries()) {
      for (const one of turns) await queues.enqueue(one);
      await losing((await world.activations.getDeduplicationJobId(encodeId("s"))) as string);
      // A job that lies in no list keeps every later wake-up away: only the repair heals it.
      if (index === 1) await queues.wake("s");
      assert.is(await world.activations.getWaitingCount(), 0, `case ${index}`);
      assert.equal(await queues.repair("s", turns), { turns: index === 2 ? 2 : 0, activations: 1 }, `case ${index}`);
      const stage = new Stage();
      const runner = await queues.work(stage.handler, { concurrency: 1 });
      await stage.ended(1);
      await runner.close(1_000);
    }
  }),
);

// ── leases ───────────────────────────────────────────────────────────────────────────────────────

/** The lock of the session's activation vanishes, as after an outage longer than it lasts. */
async function loseLock(world: RedisWorld, session: string): Promise<void> {
  const job = await world.activations.getDeduplicationJobId(encodeId(session));
  await world.client.del(world.activations.toKey(`${job}:lock`));
}

test(
  "a zombie's finish changes nothing: the next holder runs beside it, and one more run is all that follows",
  within(async (world) => {
    const [first, second] = [await world.open(), await world.openAged()];
    const zombie = gate();
    const here = new Stage(async () => {
      await zombie.promise;
      return { kind: "idle" };
    });
    const inside = gate();
    const there = new Stage(async (_lease, nth) => {
      if (nth === 1) await inside.promise;
      return { kind: "idle" };
    });
    await first.wake("s");
    const old = await first.work(here.handler, { concurrency: 1 });
    await here.began(1);
    const next = await second.work(there.handler, { concurrency: 1 });
    await loseLock(world, "s");
    await there.began(1);
    assert.equal(there.stays[0]?.stall, { job: here.stays[0]?.stall.job, count: 1, excused: false });
    assert.is(there.stays[0]?.fresh, false);
    zombie.open();
    await here.ended(1);
    await old.close(1_000);
    assert.is(await world.activations.getActiveCount(), 1);
    inside.open();
    await there.ended(1);
    await eventually("nothing is left", async () => (await world.keys(encodeId("s"))).length === 0);
    await next.close(1_000);
    assert.ok(there.stays.length <= 2, "the zombie's wake-up gives at most one more run");
  }),
  { timeoutMs: 40_000 },
);

test(
  "a lost lock in one process: the first stay is aborted, the second waits until it has returned, nobody is charged",
  within(async (world) => {
    const queues = await world.openAged();
    const lost = gate();
    const inside = gate();
    const stage = new Stage(async ({ signal }, nth) => {
      if (nth > 1) return { kind: "idle" };
      signal.addEventListener("abort", () => lost.open());
      await inside.promise;
      return { kind: "idle" };
    });
    await queues.wake("s");
    const runner = await queues.work(stage.handler, { concurrency: 4 });
    await stage.began(1);
    await loseLock(world, "s");
    await lost.promise;
    assert.is(stage.stays[0]?.signal.reason.code, "lease_lost");
    inside.open();
    await stage.ended(2);
    assert.is(stage.most, 1);
    assert.equal([stage.stays[1]?.stall.count, stage.stays[1]?.stall.excused], [1, true]);
    await eventually("nothing is left", async () => (await world.keys(encodeId("s"))).length === 0);
    await runner.close(1_000);
  }),
  { timeoutMs: 40_000 },
);

test(
  "a lease is lost by the clock, too, whatever Redis says; the session runs once more",
  within(async (world) => {
    const system = skippingSystem();
    const queues = await world.open({ system });
    const stage = new Stage(async ({ signal }, nth) => {
      if (nth === 1) await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
      return { kind: "idle" };
    });
    await queues.wake("s");
    const runner = await queues.work(stage.handler, { concurrency: 1 });
    await stage.began(1);
    system.forward(limits.lockMs - limits.leaseMarginMs + 1);
    await stage.ended(2);
    assert.is(stage.stays[0]?.signal.reason.code, "lease_lost");
    await runner.close(1_000);
  }),
);

test(
  "a stay longer than its lock keeps it",
  within(async (world) => {
    const queues = await world.open();
    const stage = new Stage(async ({ signal }) => {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, limits.lockMs + limits.stalledCheckMs * 2);
        signal.addEventListener("abort", () => {
          clearTimeout(timer);
          resolve();
        });
      });
      return { kind: "idle" };
    });
    await queues.wake("s");
    const runner = await queues.work(stage.handler, { concurrency: 1 });
    await stage.ended(1);
    assert.is(stage.stays[0]?.signal.aborted, false);
    await runner.close(1_000);
    assert.is(stage.stays.length, 1);
  }),
  { timeoutMs: 40_000 },
);

test(
  "a holder that is killed is followed once its lock has run out, with its stall counted, and again with each kill",
  within(async (world) => {
    const queues = await world.openAged();
    await queues.enqueue(turn("s", 1));
    await killedHolder(world);
    const stage = new Stage();
    const before = performance.now();
    const runner = await queues.work(stage.handler, { concurrency: 1 });
    await stage.began(1);
    assert.ok(performance.now() - before < limits.lockMs + limits.stalledCheckMs * 2 + 2_000, `${performance.now() - before} ms`);
    assert.equal([stage.stays[0]?.stall.count, stage.stays[0]?.stall.excused, stage.stays[0]?.fresh], [1, false, false]);
    await runner.close(1_000);
  }),
  { timeoutMs: 40_000 },
);

/** A process that takes the session and is killed while it holds it. */
async function killedHolder(world: RedisWorld): Promise<void> {
  const program = new URL("../support/queue-holder.ts", import.meta.url).pathname;
  const child: ChildProcess = spawn(process.execPath, ["--import", "tsx", program, world.url, world.namespace], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await new Promise<void>((resolve) => child.stdout?.once("data", () => resolve()));
  const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  child.kill("SIGKILL");
  await gone;
}

// ── shards, connections ──────────────────────────────────────────────────────────────────────────

test(
  "sessions spread over the shards by SHA-1, under one hash tag each, and all run",
  within(async (world) => {
    const queues = await world.open({ shards: 4 });
    assert.equal(
      ["a", "tg:42", "日本", "x".repeat(4_096)].map((id) => shardOf(id, 1_024)),
      [55, 857, 956, 89],
    );
    const sessions = Array.from({ length: 40 }, (_, index) => `s${index}`);
    for (const session of sessions) await queues.enqueue(turn(session, 1));
    const stage = new Stage(async ({ session }) => {
      await queues.settle(session, [queues.jobId("turn-1", 0)]);
      return { kind: "idle" };
    });
    assert.equal(new Set(sessions.map((session) => queues.shardOf(session))).size, 4);
    for (const session of sessions)
      assert.ok((await world.client.exists(`{${world.namespace}:${queues.shardOf(session)}}:${turnsQueue(session)}:wait`)) === 1);
    const runner = await queues.work(stage.handler, { concurrency: 8 });
    await stage.ended(40);
    await runner.close(1_000);
    for (let shard = 0; shard < 4; shard += 1)
      assert.is(await world.client.exists(`{${world.namespace}:${shard}}:${activationsQueue}:wait`), 0);
  }),
);

test(
  "I10: a closed runner and closed queues leave no connection",
  within(async (world) => {
    const connections = async (): Promise<number> =>
      String(await world.client.client("LIST"))
        .trim()
        .split("\n").length;
    const before = await connections();
    const queues = await world.open({ shards: 2 });
    const runner = await queues.work(new Stage().handler, { concurrency: 2 });
    const observing = await queues.observations.work(["ada"], async () => undefined);
    const quit = await queues.events.onSignal(() => undefined);
    assert.ok((await connections()) > before);
    await observing.close();
    await quit();
    await runner.close(1_000);
    await queues.close();
    await eventually("all connections are gone", async () => (await connections()) === before);
    const error = await queues.wake("s").catch((caught) => caught);
    assert.is(error.code, "queue_unavailable");
  }),
);

test("cutting connections that have ended leaves no timer behind, so that a closed worker's process ends at once", async () => {
  const client = new PatientRedis(redisUrl());
  const copy = client.duplicate();
  await Promise.all([client, copy].map((one) => once(one, "ready")));
  await Promise.all([client, copy].flatMap((one) => [once(one, "end"), one.disconnect()]));
  const timers = (): number => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
  const before = timers();
  client.cut();
  assert.is(timers(), before);
});

test.run();
