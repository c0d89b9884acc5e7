/** Workers killed with SIGKILL: their sessions go on elsewhere, each turn once (I3, I4, I12). */
import { Chance } from "../../src/testing/simulator/chance.ts";
import { inOrder, onePrefix, outcomes } from "../support/rig/checks.ts";
import type { Child } from "../support/rig/child.ts";
import { inRig, long, type Rig, until } from "../support/rig/rig.ts";
import { together } from "../support/rig/together.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("takeover", { timeoutMs: long ? 200_000 : 60_000 });

const takeoverMs = 20_000;

async function heldSessionsGoOn(rig: Rig): Promise<void> {
  const workers = await rig.workers(2);
  const held = Array.from({ length: 8 }, (_, n) => `held:${n}`);
  for (const session of held) await rig.send(session, { hold: "on" }, "1");
  await rig.send("tool", { tool: { hold: "on" } }, "1");
  for (const session of [...held, "tool"]) await rig.send(session, {}, "2");
  await rig.journal.until("all of them run", (journal) => journal.rows().length === 9 && journal.remarks("tool").length === 1);

  const victim = workers.find((worker) => worker.name === rig.journal.rows({ session: "tool" })[0]?.worker) as Child;
  const orphans = rig.journal
    .rows()
    .filter((row) => row.worker === victim.name)
    .map((row) => row.session);
  const killedAt = Date.now();
  await victim.kill();
  rig.release("on");
  await rig.waitAll([...held, "tool"].map((session) => ({ session, turnId: "2" })));

  const rows = rig.journal.rows();
  for (const session of held) {
    const calls = rows.filter((row) => row.session === session).map((row) => row.turnId);
    assert.equal(calls, orphans.includes(session) ? ["1", "1", "2"] : ["1", "2"], session);
  }
  inOrder(rows, new Map([...held, "tool"].map((session) => [session, ["1", "2"]])));
  onePrefix(rows);
  const tool = rows.filter((row) => row.session === "tool").map((row) => `${row.turnId}.${row.step}`);
  assert.equal(tool, ["1.1", "1.2", "2.1"], "the recorded step is not called for again");
  const callIds = rig.journal.remarks("tool").map(({ data }) => data.callId);
  assert.equal([callIds.length, new Set(callIds).size], [2, 1], "the tool ran again under the same call id");
  for (const session of [...held, "tool"])
    assert.equal(
      outcomes(await rig.entries(session)).map(({ outcome }) => outcome),
      ["done", "done"],
    );

  const delays = rows
    .filter((row) => orphans.includes(row.session) && row.worker !== victim.name && row.turnId === "1")
    .map((row) => row.startedAt - killedAt);
  console.log(`  takeover after kill -9: ${delays.length} sessions after ${Math.min(...delays)} to ${Math.max(...delays)} ms`);
  assert.ok(delays.length === orphans.length && Math.max(...delays) <= takeoverMs, `one was taken over after ${Math.max(...delays)} ms`);
}

const b5 = long ? { sessions: 40, turns: 5, kills: 50 } : { sessions: 10, turns: 5, kills: 4 };
const b5Seed = 5;

async function workersAreKilledAgainAndAgain(rig: Rig): Promise<void> {
  const chance = new Chance(b5Seed);
  const sessions = Array.from({ length: b5.sessions }, (_, n) => `b5:${n}`);
  const ids = Array.from({ length: b5.turns }, (_, n) => `${n + 1}`);
  for (const turnId of ids) for (const session of sessions) await rig.send(session, { sleep: 300 + chance.below(500) }, turnId);
  const workers = await rig.workers(3);
  const killedAt = new Map<string, number>();
  for (let kills = 0; kills < b5.kills; kills += 1) {
    const begun = rig.journal.rows().length;
    const next = performance.now() + 400;
    await rig.journal.until(
      "turns go on",
      (journal) => performance.now() >= next && (journal.rows().length > begun || performance.now() > next + 2_000),
    );
    const busy = workers.filter((worker) => rig.journal.rows().some((row) => row.worker === worker.name && row.endedAt === null));
    const victim = chance.pick(busy.length > 0 ? busy : workers);
    workers.splice(workers.indexOf(victim), 1);
    killedAt.set(victim.name, Date.now());
    await victim.kill();
    workers.push(await rig.begin());
  }
  await rig.waitAll(
    sessions.map((session) => ({ session, turnId: ids.at(-1) as string })),
    long ? 150_000 : 50_000,
  );

  const rows = rig.journal.rows();
  inOrder(rows, new Map(sessions.map((session) => [session, ids])));
  for (const session of sessions)
    assert.equal(
      outcomes(await rig.entries(session)).map(({ turnId, outcome }) => `${turnId} ${outcome}`),
      ids.map((id) => `${id} done`),
    );
  const cut = rows.filter((row) => row.outcome === null);
  assert.ok(cut.length > 0, "no kill met a running turn: the test proves nothing");
  const delays = cut.map((row) => {
    const after = rows.filter((other) => other.session === row.session && other.startedAt > row.startedAt);
    return Math.min(...after.map((other) => other.startedAt)) - (killedAt.get(row.worker) as number);
  });
  console.log(`  ${b5.kills} kills cut ${cut.length} turns; taken over after at most ${Math.max(...delays)} ms`);
  assert.ok(Math.max(...delays) <= takeoverMs, `one was taken over after ${Math.max(...delays)} ms`);
  await until("no key marks a session active", async () => (await marks(rig)).length === 0);
}

/** Keys that stand for a session's turns or its activation. */
async function marks(rig: Rig): Promise<string[]> {
  return (await rig.keys()).filter((key) => !/:(activations|observations|dead-letters):(meta|id|events|marker|stalled-check)$/.test(key));
}

together(test, {
  "I12: after kill -9 another worker takes over within 20 s; only the call whose reply was not recorded is repeated": inRig(
    "takeover",
    heldSessionsGoOn,
  ),
  "B5: workers killed again and again: every session drains, one reply each, nothing stays marked active": inRig(
    "b5",
    workersAreKilledAgainAndAgain,
  ),
});

test.run();
