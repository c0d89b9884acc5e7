/** What hosts see: deliveries that repeat, claims that race, sizes, events, sessions that are idle (I4, I5, I10, I11). */
import { BSON, MongoClient } from "mongodb";
import { Headfast, limits, type TurnEvent } from "../../src/index.ts";
import { turnJobId, turnsQueue } from "../../src/queues/names.ts";
import { realSystem } from "../../src/system.ts";
import { refusal } from "../support/refusal.ts";
import { outcomes } from "../support/rig/checks.ts";
import { inRig, long, type Rig, until } from "../support/rig/rig.ts";
import { together } from "../support/rig/together.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("hosts", { timeoutMs: long ? 500_000 : 60_000 });

const dayMs = 24 * 60 * 60_000;

async function deliveredAgain(rig: Rig): Promise<void> {
  const [hosts] = await Promise.all([rig.hostProcesses(2), rig.workers(2)]);
  const request = rig.request("chat 1", { hold: "on" }, "message 7");
  const first = await Promise.all([0, 1, 0, 1].map((n) => (hosts[n] as (typeof hosts)[number]).call("turns", "send", request)));
  assert.equal(first.map(({ duplicate }) => duplicate).sort(), [false, true, true, true]);
  assert.equal(new Set(first.map(({ turnId, number, generation }) => `${turnId} ${number} ${generation}`)), new Set(["message 7 1 0"]));
  await rig.journal.until("it runs", (journal) => journal.rows().length === 1);

  const other = await hosts[0]?.call("turns", "send", { ...rig.request("chat 2", {}, "message 7") });
  assert.equal([other?.duplicate, other?.number], [false, 1], "another chat's message 7 is another turn");
  const reused = await refusal(hosts[1]?.call("turns", "send", { ...request, input: "{}" }) as Promise<unknown>);
  assert.is(reused.code, "turn_id_reused");
  const times = await acknowledgements(rig, hosts[0] as (typeof hosts)[number]);
  console.log(`  E2: acknowledged while a turn runs: p50 ${times.p50} ms, p99 ${times.p99} ms`);
  assert.ok(times.p50 < 200, "half of the sends take 200 ms or more");

  rig.release("on");
  await rig.wait({ session: "chat 1", turnId: "message 7" });
  const late = await hosts[1]?.call("turns", "send", request);
  assert.equal([late?.duplicate, late?.state, late?.outcome, late?.number], [true, "ended", "done", 1]);
  await aDayLater(rig, request);
  assert.is(rig.journal.rows({ session: "chat 1", turnId: "message 7" }).length, 1, "one turn, called for once");
  assert.is(outcomes(await rig.entries("chat 1")).filter(({ turnId }) => turnId === "message 7").length, 1);
}

async function acknowledgements(rig: Rig, host: Awaited<ReturnType<Rig["hostProcesses"]>>[number]): Promise<{ p50: number; p99: number }> {
  const times: number[] = [];
  for (let n = 0; n < (long ? 500 : 40); n += 1) times.push((await host.call("turns", "send", rig.request("chat 1"))).ms);
  times.sort((a, b) => a - b);
  return { p50: Math.round(times[times.length >> 1] as number), p99: Math.round(times[Math.floor(times.length * 0.99)] as number) };
}

/** A host whose clock is a day ahead once it has started. */
async function aDayLater(rig: Rig, request: ReturnType<Rig["request"]>): Promise<void> {
  let ahead = 0;
  const { redis, mongo, namespace } = rig;
  const host = await Headfast.connect({
    redis,
    mongo,
    namespace,
    parts: { system: { ...realSystem, now: () => realSystem.now() + ahead } },
  });
  try {
    ahead = dayMs;
    const sent = await host.turns.send(request);
    assert.equal([sent.duplicate, sent.state, sent.number], [true, "ended", 1]);
  } finally {
    await host.close();
  }
}

async function claimsRace(rig: Rig): Promise<void> {
  const hosts = await rig.hostProcesses(8);
  const rounds = long ? 500 : 2;
  for (let round = 0; round < rounds; round += 1) {
    const same = await Promise.all(
      Array.from({ length: 64 }, (_, n) => (hosts[n % 8] as (typeof hosts)[number]).call("sessions", "claim", `same ${round}`, "ada")),
    );
    assert.equal(new Set(same.map(({ bot, createdAt }) => `${bot} ${createdAt}`)).size, 1, "all were given the one document");
    const answers = await Promise.all(
      Array.from({ length: 64 }, (_, n) =>
        (hosts[n % 8] as (typeof hosts)[number]).call("sessions", "claim", `rivals ${round}`, `bot ${n}`).then(
          ({ bot }) => ({ bot, code: "", message: "" }),
          (error: { code: string; message: string }) => ({ bot: "", code: error.code, message: error.message }),
        ),
      ),
    );
    const winners = answers.filter(({ bot }) => bot !== "");
    assert.is(winners.length, 1, `round ${round}`);
    const losers = answers.filter(({ bot }) => bot === "");
    assert.ok(
      losers.every(({ code, message }) => code === "ownership_conflict" && message.includes(`"${winners[0]?.bot}"`)),
      JSON.stringify(losers[0]),
    );
  }
  await looking(rig, async (db) => assert.is(await db.collection("session_ownership").countDocuments({}), rounds * 2));
}

async function looking(rig: Rig, look: (db: ReturnType<MongoClient["db"]>) => Promise<void>): Promise<void> {
  const client = new MongoClient(rig.mongo);
  try {
    await look(client.db(rig.namespace));
  } finally {
    await client.close();
  }
}

const c7 = long ? { turns: 10_000, notes: 2_000, large: 300 } : { turns: 100, notes: 60, large: 8 };

async function sizesStayBounded(rig: Rig): Promise<void> {
  const { turns, inbox } = await rig.host();
  for (const input of ["x".repeat(limits.inputBytesMax + 1), "x".repeat(17 << 20)]) {
    const error = await refusal(turns.send({ ...rig.request("s"), input }));
    assert.is(error.code, "input_too_large");
    assert.match(error.message, String(limits.inputBytesMax));
  }
  assert.equal(await rig.keys().then((keys) => keys.filter((key) => key.includes("turns"))), []);

  const large = { padding: "x".repeat(limits.inputBytesMax - 100) };
  for (let n = 1; n <= c7.large; n += 1) await rig.send("large", large, `l${n}`);
  const prefix = `{${rig.namespace}:0}`;
  const job = await rig.client.hgetall(`${prefix}:${turnsQueue("large")}:${turnJobId("l1", 0)}`);
  assert.ok(JSON.stringify(job).length < limits.inlineInputBytesMax, "a large input lies in Redis");
  assert.ok((await bytesIn(rig)) < 64 * 1024 + c7.large * 2_048, `${c7.large} turns of 1 MB take ${await bytesIn(rig)} bytes of Redis`);

  await rig.send("s", {}, "first");
  for (let n = 1; n <= c7.notes; n += 1) await inbox.post({ session: "s", text: `note ${n}` });
  for (let n = 1; n <= c7.turns; n += 1) await rig.send("s", {}, `t${n}`);
  await rig.workers(2);
  await rig.waitAll(
    [
      { session: "s", turnId: `t${c7.turns}` },
      { session: "large", turnId: `l${c7.large}` },
    ],
    400_000,
  );
  const told = (await rig.entries("s")).flatMap((entry) =>
    entry.messages
      .filter((message) => message.role === "user")
      .map((message) => message.blocks.filter((block) => block.type === "note").map((block) => block.text)),
  );
  assert.equal(
    told.flat(),
    Array.from({ length: c7.notes }, (_, n) => `note ${n + 1}`),
    "every note told once, in order",
  );
  assert.ok(told.every((notes) => notes.length <= limits.notesToldMax));
  await until(
    "the marks are flushed",
    async () => (await (await rig.host()).sessions.get("s")).owner.lastNumber > c7.turns - limits.hintLagMax,
  );
  await looking(rig, async (db) => {
    for await (const document of db.collection("session_ownership").find({})) assert.ok(BSON.calculateObjectSize(document) < 64 * 1024);
    for await (const document of db.collection("turns").find({ session: "s" })) assert.ok(BSON.calculateObjectSize(document) < 8 * 1024);
  });
}

async function bytesIn(rig: Rig): Promise<number> {
  let bytes = 0;
  for (const key of await rig.keys()) bytes += Number((await rig.client.memory("USAGE", key)) ?? 0);
  return bytes;
}

const finals = /^turn\.(done|dead|cancelled)$/;

async function eventsOfEveryOutcome(rig: Rig): Promise<void> {
  await rig.workers(2, { bots: [{ name: "ada", attempts: 1 }] });
  const host = await rig.host();
  const raw: TurnEvent[] = [];
  const unsubscribe = await host.internals.queues.events.subscribe(
    "s",
    (event) => raw.push(event),
    () => undefined,
  );
  await rig.send("s", { hold: "long" }, "long");
  const follow = async (turnId: string): Promise<string[]> => {
    const types: string[] = [];
    for await (const event of host.turns.events({ session: "s", turnId })) types.push(event.type);
    return types;
  };
  const deaf = host.turns.events({ session: "s", turnId: "long" });
  await deaf.next(); // and never again: a subscriber that hangs holds up nobody
  const following = [follow("long"), follow("long")];
  await rig.send("s", { fail: 1 }, "dies");
  await rig.send("s", {}, "short");
  await rig.send("s", { hold: "never" }, "cancelled");
  for (const turnId of ["dies", "short", "cancelled"]) following.push(follow(turnId));
  await until("two heartbeats", () => raw.filter(({ type }) => type === "turn.heartbeat").length >= 2);
  rig.release("long");
  await rig.journal.until("the last one runs", (journal) => journal.rows({ turnId: "cancelled" }).length === 1);
  await host.turns.cancel({ session: "s", turnId: "cancelled" });
  const heard = await Promise.all(following);

  assert.equal(
    heard.map((types) => types.filter((type) => finals.test(type))),
    [["turn.done"], ["turn.done"], ["turn.dead"], ["turn.done"], ["turn.cancelled"]],
  );
  for (const types of heard) assert.match(types.at(-1) as string, finals);
  for (const types of heard.slice(0, 2)) assert.ok(types.filter((type) => type === "turn.heartbeat").length >= 2, types.join());
  assert.equal(await follow("long"), ["turn.done"], "who joins late hears the end");
  assert.equal(await follow("dies"), ["turn.dead"]);
  await rig.wait(await rig.send("s", {}, "after"));
  await deaf.return(undefined);
  await unsubscribe();
  for (const turnId of ["long", "dies", "short", "cancelled"]) {
    const of = raw.filter((event) => event.turnId === turnId).map(({ type }) => type);
    assert.ok(of.filter((type) => finals.test(type)).length === 1 && finals.test(of.at(-1) as string), `${turnId}: ${of.join()}`);
  }
}

const idleSessions = long ? 10_000 : 500;

async function idleSessionsCostNothing(rig: Rig): Promise<void> {
  await rig.workers(2, { concurrency: 64 });
  const sessions = Array.from({ length: idleSessions }, (_, n) => `idle:${n}`);
  for (let from = 0; from < sessions.length; from += 100)
    await Promise.all(sessions.slice(from, from + 100).map((session) => rig.send(session, {}, "1")));
  await rig.journal.until(
    "all are answered",
    (journal) => journal.rows().filter((row) => row.outcome !== null).length === idleSessions,
    300_000,
  );
  const left = async (): Promise<string[]> =>
    (await rig.keys()).filter((key) => !/:(activations|observations|dead-letters):(meta|id|events|marker|stalled-check)$/.test(key));
  await until(`no key of ${idleSessions} idle sessions is left`, async () => (await left()).length === 0);
  console.log(`  ${idleSessions} idle sessions: ${(await rig.keys()).length} keys of the shard itself, ${await bytesIn(rig)} bytes`);
}

together(test, {
  "E2: a message delivered again, at once by two hosts, after the end, a day later, is one turn; keys are per session": inRig(
    "e2",
    deliveredAgain,
  ),
  "C1: claims of one fresh session from eight processes have one outcome, and losers are told who won": inRig("c1", claimsRace),
  "C7: many turns, many notes and large inputs leave documents, jobs and Redis small; what is too large is refused by name": inRig(
    "c7",
    sizesStayBounded,
  ),
  "E10: heartbeats while a turn runs, one final event in every outcome, none after it, also for who joins late": inRig(
    "e10",
    eventsOfEveryOutcome,
  ),
  "I10: idle sessions leave no key in Redis": inRig("idle", idleSessionsCostNothing),
});

test.run();
