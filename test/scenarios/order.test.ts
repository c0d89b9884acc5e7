/** Turns of a session in order, of many sessions at once, over host and worker processes (I3, I4). */
import { MongoClient } from "mongodb";
import { encodeId, turnsQueue } from "../../src/queues/names.ts";
import { Chance } from "../../src/testing/simulator/chance.ts";
import { refusal } from "../support/refusal.ts";
import { inOrder, onePrefix, outcomes, sessionsAtOnce } from "../support/rig/checks.ts";
import { inRig, long, type Rig } from "../support/rig/rig.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("order", { timeoutMs: long ? 400_000 : 60_000 });

const seed = 20_260_101;
const b1 = long
  ? { sessions: 200, turns: 50, hosts: 4, workers: 8, concurrency: 16, atOnce: 100 }
  : { sessions: 20, turns: 10, hosts: 2, workers: 3, concurrency: 8, atOnce: 10 };

test(
  "B1: turns of many sessions from several hosts run in the order they were sent in, each once, sessions side by side",
  inRig("b1", async (rig) => {
    const [hosts] = await Promise.all([rig.hostProcesses(b1.hosts), rig.workers(b1.workers, { concurrency: b1.concurrency })]);
    const chance = new Chance(seed);
    const sent = new Map<string, string[]>();
    const sendAll = async (session: string): Promise<void> => {
      const ids: string[] = [];
      sent.set(session, ids);
      for (let turn = 1; turn <= b1.turns; turn += 1) {
        const request = rig.request(session, { sleep: chance.below(21) }, `t${turn}`);
        const accepted = await (hosts[turn % hosts.length] as (typeof hosts)[number]).call("turns", "send", request);
        assert.equal([accepted.number, accepted.duplicate], [turn, false], `${session} ${request.turnId}`);
        ids.push(request.turnId);
      }
    };
    const sessions = Array.from({ length: b1.sessions }, (_, n) => `b1:${n}`);
    await Promise.all(sessions.map(sendAll));
    await rig.waitAll(
      sessions.map((session) => ({ session, turnId: `t${b1.turns}` })),
      long ? 300_000 : 50_000,
    );

    const rows = rig.journal.rows();
    inOrder(rows, sent);
    onePrefix(rows);
    assert.is(rows.length, b1.sessions * b1.turns, "every turn was called for once");
    assert.ok(new Set(rows.map((row) => row.worker)).size > 1, "more than one worker had a part in it");
    assert.ok(sessionsAtOnce(rows) >= b1.atOnce, `${sessionsAtOnce(rows)} sessions ran beside another`);
    for (const session of sessions.slice(0, 20))
      assert.equal(
        outcomes(await rig.entries(session)),
        (sent.get(session) as string[]).map((turnId) => ({ turnId, generation: 0, outcome: "done" })),
      );
  }),
);

const oddIds = [
  "tg:42",
  "-1001234567",
  "-100123",
  "123456",
  "a:b:c",
  "a:b:c:d",
  "0",
  "x".repeat(2_048),
  "🦊\nnext",
  "../x",
  "__proto__",
  " ",
  "\t",
  "日本",
  "A",
  "a",
  "tg%3A42",
  "~0",
  "{a}",
  "a b",
  "*?[x]",
];

test(
  "B9: any non-empty id works as session and as turn, stays distinct in Redis and MongoDB, and comes back unchanged",
  inRig("b9", async (rig) => {
    const host = await rig.host();
    for (const session of oddIds) await rig.send(session, {}, session);
    for (const turnId of oddIds) await rig.send("all", {}, turnId);
    await distinctInRedis(rig);
    await distinctInMongo(rig);

    await rig.workers(2);
    const turns = oddIds.flatMap((id) => [
      { session: id, turnId: id },
      { session: "all", turnId: id },
    ]);
    for (const ended of await rig.waitAll(turns)) assert.equal([ended.outcome, ended.text], ["done", `re: ${ended.turnId}`]);
    inOrder(rig.journal.rows({ session: "all" }), new Map([["all", oddIds]]));
    for (const id of oddIds) assert.equal([(await rig.send(id, {}, id)).duplicate, (await host.sessions.get(id)).turns], [true, 1]);
  }),
);

async function distinctInRedis(rig: Rig): Promise<void> {
  const keys = new Set(await rig.keys());
  const prefix = `{${rig.namespace}:0}`;
  for (const id of oddIds)
    assert.is(await rig.client.llen(`${prefix}:${turnsQueue(id)}:wait`), 1, `the turn queue of ${JSON.stringify(id).slice(0, 40)}`);
  assert.is(await rig.client.llen(`${prefix}:${turnsQueue("all")}:wait`), oddIds.length);
  assert.is([...keys].filter((key) => key.startsWith(`${prefix}:turns`) && key.endsWith(":wait")).length, oddIds.length + 1);
  assert.is(new Set(oddIds.map(encodeId)).size, oddIds.length);
}

async function distinctInMongo(rig: Rig): Promise<void> {
  const client = new MongoClient(rig.mongo);
  try {
    const db = client.db(rig.namespace);
    assert.is(await db.collection("session_ownership").countDocuments({}), oddIds.length + 1);
    assert.is(await db.collection("turns").countDocuments({}), oddIds.length * 2);
  } finally {
    await client.close();
  }
}

test(
  "B9: an empty id, and one that is no text or too long, is refused by name and leaves nothing behind",
  inRig("b9", async (rig) => {
    const { turns } = await rig.host();
    for (const bad of ["", "x".repeat(4_097), 7, null, undefined, { $ne: "" }]) {
      for (const field of ["session", "turnId"]) {
        const error = await refusal(turns.send({ ...rig.request("s"), [field]: bad }));
        assert.is(error.code, "invalid_id", `${field}: ${String(bad).slice(0, 20)}`);
        assert.match(error.message, field);
      }
    }
    assert.equal(
      (await rig.keys()).filter((key) => !key.endsWith(":activations:meta")),
      [],
    );
  }),
);

test(
  "E1: what is sent while a turn runs is answered behind it, in order, also when its host dies",
  inRig("e1", async (rig) => {
    const [[dying, other]] = await Promise.all([rig.hostProcesses(2), rig.workers(2)]);
    await rig.send("s", { hold: "first" }, "first");
    await rig.journal.until("the first turn runs", (journal) => journal.rows().length === 1);
    for (const turnId of ["m1", "m2", "m3"]) await dying?.call("turns", "send", rig.request("s", {}, turnId));
    const cut = dying?.call("turns", "send", rig.request("s", {}, "m4")).then(
      () => true,
      () => false,
    );
    await dying?.kill();
    await cut;
    await other?.call("turns", "send", rig.request("s", {}, "m5"));
    assert.is(rig.journal.rows().length, 1, "nothing ran beside the first turn");
    rig.release("first");
    await rig.wait({ session: "s", turnId: "m5" });

    const ran = rig.journal.rows().map((row) => row.turnId);
    assert.equal(
      ran.filter((turnId) => turnId !== "m4"),
      ["first", "m1", "m2", "m3", "m5"],
    );
    const accepted = (await (await rig.host()).sessions.get("s")).turns;
    assert.is(ran.includes("m4"), accepted === 6, "the one whose acknowledgement was cut off ran if it was accepted");
    inOrder(rig.journal.rows(), new Map([["s", ran]]));
    assert.equal(
      outcomes(await rig.entries("s")).map(({ turnId, outcome }) => `${turnId} ${outcome}`),
      ran.map((turnId) => `${turnId} done`),
    );
  }),
);

test.run();
