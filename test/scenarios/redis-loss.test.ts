/** Redis killed, emptied, full, evicting, or robbed of single keys: every acknowledged turn is answered (I12, I13). */

import { Queue } from "bullmq";
import { type OwnServer, ownRedis } from "../../services/launcher.ts";
import { checkTurnRequest, claimSession, freshTurn, placeTurn } from "../../src/domain/acceptance.ts";
import { Headfast, startWorker, type Turn } from "../../src/index.ts";
import { encodeId, turnJobId, turnsQueue } from "../../src/queues/names.ts";
import { turnData, turnJob } from "../../src/queues/payloads.ts";
import { refusal } from "../support/refusal.ts";
import { onePrefix, outcomes } from "../support/rig/checks.ts";
import { inRig, long, type Rig, until } from "../support/rig/rig.ts";
import { together } from "../support/rig/together.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("redis loss", { timeoutMs: long ? 200_000 : 60_000 });

/** The body with a Redis of its own, which may be killed, emptied and filled. */
function onOwnRedis(
  name: string,
  options: Parameters<typeof ownRedis>[0],
  body: (rig: Rig, redis: OwnServer) => Promise<void>,
): () => Promise<void> {
  return async () => {
    const redis = await ownRedis(options);
    try {
      await inRig(name, (rig) => body(rig, redis), { redis: redis.url })();
    } finally {
      await redis.stop();
    }
  };
}

async function sendAll(rig: Rig, sessions: readonly string[], ids: readonly string[], sleep: number): Promise<void> {
  for (const turnId of ids) await Promise.all(sessions.map((session) => rig.send(session, { sleep }, turnId)));
}

/** Every turn of the sessions is done, each once, in order. */
async function allAnswered(rig: Rig, sessions: readonly string[], ids: readonly string[]): Promise<void> {
  await rig.waitAll(sessions.map((session) => ({ session, turnId: ids.at(-1) as string })));
  // Where Redis came back without its locks two holders may call at once for a while: the log keeps one answer of each turn.
  for (const session of sessions) {
    const begun = rig.journal.rows().filter((row) => row.session === session);
    assert.equal([...new Set(begun.map((row) => row.turnId))], ids, `the turns of ${session} began in this order`);
  }
  onePrefix(rig.journal.rows());
  for (const session of sessions)
    assert.equal(
      outcomes(await rig.entries(session)).map(({ turnId, outcome }) => `${turnId} ${outcome}`),
      ids.map((id) => `${id} done`),
    );
}

const names = (prefix: string, count: number): string[] => Array.from({ length: count }, (_, n) => `${prefix}${n}`);

async function killedAndBack(rig: Rig, redis: OwnServer): Promise<void> {
  const sessions = names("b7:", 10);
  const ids = names("", 10);
  await sendAll(rig, sessions, ids, 30);
  await rig.workers(2);
  await rig.journal.until("turns run", (journal) => journal.rows().filter((row) => row.outcome !== null).length >= 20);
  await redis.kill();
  const back = performance.now() + (long ? 10_000 : 3_000);
  const outage: { ms: number; inRedis: boolean }[] = [];
  await until("the outage has lasted", async () => {
    const asked = performance.now();
    const { inRedis } = await rig.send("outage", {}, `o${outage.length}`);
    outage.push({ ms: performance.now() - asked, inRedis });
    return performance.now() > back;
  });
  await redis.restart();
  assert.ok(outage.length >= 3 && outage.every(({ inRedis }) => !inRedis), "a send during the outage is acknowledged without Redis");
  const sorted = outage.map(({ ms }) => ms).sort((a, b) => a - b);
  const [least, middle, most] = [sorted[0], sorted[sorted.length >> 1], sorted.at(-1)].map((ms) => Math.round(ms as number)) as [
    number,
    number,
    number,
  ];
  console.log(`  B7: ${outage.length} sends during the outage took ${least} to ${most} ms, ${middle} in the middle`);
  // What MongoDB takes on a busy machine is not Redis' outage: it may add to the most, not to the least.
  assert.ok(least <= 250 && most <= 2_000, "a send waits for Redis");
  await allAnswered(rig, [...sessions], ids);
  await rig.waitAll(names("o", outage.length).map((turnId) => ({ session: "outage", turnId })));

  await unblockAll(rig);
  await rig.waitAll(await Promise.all(names("u:", 4).map((session) => rig.send(session))));
  for (const type of ["normal", "pubsub"]) await rig.client.call("CLIENT", "KILL", "TYPE", type, "SKIPME", "yes");
  await rig.waitAll(await Promise.all(names("k:", 4).map((session) => rig.send(session))));
}

/** CLIENT UNBLOCK … ERROR for every connection that waits in a blocking command. */
async function unblockAll(rig: Rig): Promise<void> {
  const list = String(await rig.client.call("CLIENT", "LIST"));
  const blocked = list.split("\n").filter((line) => /\bflags=\w*b/.test(line));
  assert.ok(blocked.length >= 2, "the workers wait in blocking commands");
  for (const line of blocked) await rig.client.call("CLIENT", "UNBLOCK", /\bid=(\d+)/.exec(line)?.[1] as string, "ERROR");
}

async function backEmpty(rig: Rig, redis: OwnServer): Promise<void> {
  const sessions = names("empty:", 10);
  const ids = names("", 6);
  await rig.workers(2, { concurrency: 4 });
  await sendAll(rig, sessions, ids, 50);
  await rig.journal.until("turns run", (journal) => journal.rows().length >= 10);
  await redis.kill();
  await redis.restart();
  await until("Redis is back, empty", async () => (await rig.client.ping()) === "PONG");
  const began = performance.now();
  await allAnswered(rig, sessions, ids);
  console.log(`  I13: after a restart without its data all was answered in ${Math.round(performance.now() - began)} ms`);
}

async function emptied(rig: Rig): Promise<void> {
  const sessions = names("flushed:", 10);
  const ids = names("", 4);
  await sendAll(rig, sessions, ids, 0);
  await rig.client.flushall();
  assert.equal(await rig.keys(), []);
  const began = performance.now();
  await rig.workers(2);
  await allAnswered(rig, sessions, ids);
  console.log(
    `  I13: emptied with ${sessions.length * ids.length} turns waiting, all answered in ${Math.round(performance.now() - began)} ms`,
  );
}

/** What is left in Redis of a turn that MongoDB has, by session. */
const leftovers: Record<string, (rig: Rig, turn: Turn) => Promise<unknown>> = {
  nothing: async () => undefined,
  "its turn, no wake-up": async (rig, turn) => {
    const queue = new Queue(turnsQueue(turn.session), { connection: rig.client, prefix: `{${rig.namespace}:0}` });
    await queue.add(turnJob, JSON.parse(turnData(turn)), { jobId: turnJobId(turn.turnId, turn.generation) });
    await queue.close();
  },
  "the key of a wake-up that is gone": (rig, { session }) =>
    rig.client.set(`{${rig.namespace}:0}:activations:de:${encodeId(session)}`, "77777"),
  "a wake-up that is in no list": async (rig, { session }) => {
    await rig.client.hset(`{${rig.namespace}:0}:activations:88888`, "name", "activation", "data", "{}", "opts", "{}");
    await rig.client.set(`{${rig.namespace}:0}:activations:de:${encodeId(session)}`, "88888");
  },
};

async function robbed(rig: Rig): Promise<void> {
  await rig.workers(2);
  await rig.send("held", { hold: "on" }, "1");
  await rig.journal.until("one runs", (journal) => journal.rows({ session: "held" }).length === 1);
  const sessions = Object.keys(leftovers);
  const began = performance.now();
  for (const session of sessions) await leftovers[session]?.(rig, await acceptedOnly(rig, session));
  await rig.waitAll(sessions.map((session) => ({ session, turnId: "1" })));
  const ms = Math.round(performance.now() - began);
  console.log(`  lost wake-ups and keys were mended after ${ms} ms`);
  assert.ok(ms < 25_000, "the reconciler looks every 10 s at turns that are 5 s old");
  rig.release("on");
  await rig.wait({ session: "held", turnId: "1" });
  assert.equal(
    rig.journal.rows().map(({ attempt }) => attempt),
    [1, 1, 1, 1, 1],
    "each was called for once, and nobody else was disturbed",
  );
}

/** A turn that stands in MongoDB, and of which nothing came to Redis. */
async function acceptedOnly(rig: Rig, session: string): Promise<Turn> {
  const { ledger } = (await rig.host()).internals;
  await claimSession(ledger, session, "ada");
  return (await placeTurn(ledger, freshTurn(ledger, checkTurnRequest(rig.request(session, {}, "1")), 0), 0)).turn;
}

async function evictingIsRefused(rig: Rig): Promise<void> {
  const { redis, mongo, namespace } = rig;
  for (const policy of ["allkeys-lru", "volatile-lru"]) {
    await rig.client.config("SET", "maxmemory-policy", policy);
    for (const start of [() => Headfast.connect({ redis, mongo, namespace }), () => startWorker({ redis, mongo, namespace, bots: [] })]) {
      const error = await refusal(start());
      assert.is(error.code, "eviction_policy");
      assert.match(error.message, policy);
      assert.match(error.message, "noeviction");
    }
  }
  await rig.client.config("SET", "maxmemory-policy", "noeviction");
}

async function fullAndFreed(rig: Rig): Promise<void> {
  await evictingIsRefused(rig);
  await rig.workers(2);
  await rig.wait(await rig.send("s", {}, "before"));
  const filled = await fill(rig);
  const full = await rig.send("s", {}, "full");
  const again = await rig.send("s", {}, "full");
  assert.equal([full.inRedis, full.duplicate, full.number], [false, false, 2]);
  assert.equal([again.inRedis, again.duplicate, again.number], [false, true, 2]);
  for (const session of names("full:", 5)) assert.is((await rig.send(session, {}, "1")).inRedis, false);
  await rig.client.del(filled);
  await rig.waitAll([{ session: "s", turnId: "full" }, ...names("full:", 5).map((session) => ({ session, turnId: "1" }))]);
  assert.is(rig.journal.rows().length, 7, "each was called for once");
}

/** Fills Redis well beyond its limit: no free buffer makes up for it. Answers the keys. */
async function fill(rig: Rig): Promise<string[]> {
  const keys = names("fill:", 8);
  for (const key of keys) await rig.client.set(key, "x".repeat(1 << 20));
  const used = /^used_memory:(\d+)/m.exec(await rig.client.info("memory"))?.[1];
  await rig.client.config("SET", "maxmemory", String(Number(used) - (4 << 20)));
  return keys;
}

together(test, {
  "B7: Redis killed in mid-run and back: every turn is done with no process restarted, sends go on meanwhile, cut clients come back":
    onOwnRedis("b7", { appendOnly: true }, killedAndBack),
  "B8: an evicting Redis is refused by name; with a full one sending succeeds, and all goes on once it is freed": onOwnRedis(
    "b8",
    { config: { maxmemory: "20mb" } },
    fullAndFreed,
  ),
  "I13: Redis back empty with turns waiting and running: all are answered, in order": onOwnRedis("i13", {}, backEmpty),
  "I13: Redis emptied with turns waiting: all are answered, in order": onOwnRedis("i13", {}, emptied),
  "I13: lost wake-ups and lost keys of single sessions are mended by the reconciler": inRig("robbed", robbed),
});

test.run();
