/** A process that dies at any point of a turn, and a turn that kills its process (I4, I11, I12). */
import { MongoClient } from "mongodb";
import { inOrder, onePrefix, outcomes } from "../support/rig/checks.ts";
import type { Point } from "../support/rig/points.ts";
import { inRig, long, type Rig } from "../support/rig/rig.ts";
import { together } from "../support/rig/together.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("crashes", { timeoutMs: long ? 300_000 : 60_000 });

const recoveryMs = 20_000;

/** `repeats`: the step whose reply was given but not recorded. */
type Death = Point & { repeats?: number };

/** Of a session's first turn, which calls a tool: two model calls. The six of the short form come first. */
const deaths: readonly Death[] = [
  { operation: "activation", when: "before", nth: 1 },
  { operation: "store.ownership.freeze", when: "after", nth: 1 },
  { operation: "store.log.insert", when: "before", nth: 1, repeats: 1 },
  { operation: "store.log.insert", when: "after", nth: 1 },
  { operation: "model.call", when: "after", nth: 2, repeats: 2 },
  { operation: "activation", when: "after", nth: 1 },
  { operation: "queues.peek", when: "before", nth: 1 },
  { operation: "queues.peek", when: "after", nth: 1 },
  { operation: "store.ownership.get", when: "after", nth: 1 },
  { operation: "store.ownership.freeze", when: "before", nth: 1 },
  { operation: "store.parts.put", when: "after", nth: 1 },
  { operation: "store.notes.get", when: "after", nth: 1 },
  { operation: "model.call", when: "before", nth: 1 },
  { operation: "model.call", when: "after", nth: 1, repeats: 1 },
  { operation: "model.call", when: "before", nth: 2 },
  { operation: "store.log.insert", when: "before", nth: 2, repeats: 2 },
  { operation: "store.log.insert", when: "after", nth: 2 },
  { operation: "queues.settle", when: "before", nth: 1 },
  { operation: "queues.settle", when: "after", nth: 1 },
  { operation: "store.turns.settle", when: "before", nth: 1 },
  { operation: "store.turns.settle", when: "after", nth: 1 },
  { operation: "store.ownership.touch", when: "after", nth: 1 },
];

async function diesAt(rig: Rig, death: Death): Promise<number> {
  const { repeats, ...die } = death;
  const name = `${die.when} ${die.operation} ${die.nth}`;
  await rig.send("s", { tool: {} }, "1");
  await rig.send("s", {}, "2");
  const dying = await rig.begin({ die });
  dying.expected = "any";
  const exit = await dying.exited;
  const diedAt = performance.now();
  assert.equal([exit.signal, rig.journal.remarks("died").length], ["SIGKILL", 1], name);
  await rig.workers(1);
  await rig.send("s", {}, "3");
  await rig.wait({ session: "s", turnId: "3" });
  const ms = performance.now() - diedAt;

  const rows = rig.journal.rows();
  const calls = ["1.1", "1.2", "2.1", "3.1"].flatMap((call) => (call === `1.${repeats}` ? [call, call] : [call]));
  assert.equal(
    rows.map((row) => `${row.turnId}.${row.step}`),
    calls,
    name,
  );
  inOrder(rows, new Map([["s", ["1", "2", "3"]]]));
  onePrefix(rows);
  assert.equal(
    outcomes(await rig.entries("s")).map(({ turnId, outcome }) => `${turnId} ${outcome}`),
    ["1 done", "2 done", "3 done"],
    name,
  );
  assert.is(new Set(rig.journal.remarks("tool").map(({ data }) => data.callId)).size, 1, name);
  return ms;
}

async function diesEverywhere(): Promise<void> {
  const chosen = long ? deaths : deaths.slice(0, 6);
  const took: number[] = [];
  for (let from = 0; from < chosen.length; from += 6)
    await Promise.all(chosen.slice(from, from + 6).map((death) => inRig("e5", async (rig) => void took.push(await diesAt(rig, death)))()));
  console.log(`  ${took.length} points; usable again after at most ${Math.round(Math.max(...took))} ms`);
  assert.ok(Math.max(...took) <= recoveryMs, `one took ${Math.round(Math.max(...took))} ms`);
}

/** Each crash costs a takeover: in the short form four are in the turn's document already. */
async function aTurnThatKillsItsProcess(rig: Rig): Promise<void> {
  const crashes = long ? 5 : 1;
  await rig.send("s", {}, "1");
  await rig.send("s", { exit: crashes }, "2");
  for (const turnId of ["3", "4", "5"]) await rig.send("s", {}, turnId);
  if (!long) await change(rig, "2", { crashes: 4, start_mark: "an earlier process" });
  for (let crash = 0; crash < crashes; crash += 1) {
    const [victim, other] = await rig.workers(2);
    for (const worker of [victim, other]) if (worker !== undefined) worker.expected = "any";
    const exit = await Promise.race([victim?.exited, other?.exited]);
    assert.is(exit?.code, 99);
    if (crash < crashes - 1) await Promise.all([victim?.kill(), other?.kill()]);
  }
  await rig.wait({ session: "s", turnId: "5" });
  assert.equal(
    outcomes(await rig.entries("s")).map(({ turnId, outcome }) => `${turnId} ${outcome}`),
    ["1 done", "2 dead", "3 done", "4 done", "5 done"],
  );
  assert.equal(
    rig.journal.rows().map((row) => row.turnId),
    ["1", ...Array.from({ length: crashes }, () => "2"), "3", "4", "5"],
  );

  const { deadLetters } = await rig.host();
  const letter = await deadLetters.get("s", "2");
  assert.equal([letter.cause.code, letter.crashes, letter.attempts.length], ["crash_limit", 5, 0], "a crash is not an attempt");
  assert.match(letter.cause.message, /died 5 times .*, the last time worker .+\/\d+\/\w+, found gone at \d{4}-.* own log and exit code/);
  const replay = await deadLetters.replay("s", "2");
  assert.equal([(await rig.wait(replay)).outcome, replay.generation], ["done", 1]);
}

async function change(rig: Rig, turnId: string, set: Record<string, unknown>): Promise<void> {
  const client = new MongoClient(rig.mongo);
  try {
    const { modifiedCount } = await client.db(rig.namespace).collection("turns").updateOne({ turn_id: turnId }, { $set: set });
    assert.is(modifiedCount, 1);
  } finally {
    await client.close();
  }
}

/** E10 for the outcome that no process lives to tell. */
async function eventsOfACrashedTurn(rig: Rig): Promise<void> {
  const [victim] = await rig.workers(1);
  const turn = await rig.send("s", { hold: "on" });
  const types: string[] = [];
  const following = (async () => {
    for await (const event of (await rig.host()).turns.events(turn)) types.push(event.type);
  })();
  await rig.journal.until("it runs", (journal) => journal.rows().length === 1);
  await victim?.kill();
  rig.release("on");
  await rig.workers(1);
  await rig.wait(turn);
  await following;
  assert.equal(
    types.filter((type) => /done|dead|cancelled/.test(type)),
    ["turn.done"],
  );
  assert.is(types.at(-1), "turn.done");
}

together(test, {
  "E5: killed at each point of a turn, it is driven on by itself, reply once, only the unrecorded call repeated": diesEverywhere,
  "E8: a turn that kills its process each time is a dead letter after five crashes, and those behind it run": inRig(
    "e8",
    aTurnThatKillsItsProcess,
  ),
  "E10: a crash in mid-turn ends with one final event, to who had subscribed before": inRig("e10", eventsOfACrashedTurn),
});

test.run();
