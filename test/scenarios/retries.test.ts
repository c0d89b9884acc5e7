/** What fails, is cancelled, parked and replayed, over worker and host processes (I3, I4, I11). */
import { inOrder, onePrefix, outcomes } from "../support/rig/checks.ts";
import { inRig, type Rig, until } from "../support/rig/rig.ts";
import { together } from "../support/rig/together.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("retries", { timeoutMs: 60_000 });

/** The turns of a session as its log ended them, in the log's order: `t1 done`, or `t1~1 done` for a replay. */
async function ends(rig: Rig, session: string): Promise<string[]> {
  return outcomes(await rig.entries(session)).map(
    ({ turnId, generation, outcome }) => `${turnId}${generation === 0 ? "" : `~${generation}`} ${outcome}`,
  );
}

/** The listing follows the log within the time that marks are flushed in. */
async function listed(rig: Rig, turnIds: readonly string[]): Promise<void> {
  const { deadLetters } = await rig.host();
  await until(
    `the dead letters are ${turnIds.join()}`,
    async () => (await deadLetters.list()).map(({ turnId }) => turnId).join() === turnIds.join(),
  );
}

/** One slot of two is held: what is seen to run beside a back-off runs in the slot that the back-off left. */
async function aRetryKeepsItsPlace(rig: Rig): Promise<void> {
  await rig.workers(2, { concurrency: 1 });
  await rig.send("held", { hold: "end" });
  await rig.journal.until("a slot is held", (journal) => journal.rows({ session: "held" }).length === 1);
  await rig.send("a", { fail: 2 }, "1");
  for (const turnId of ["2", "3"]) await rig.send("a", {}, turnId);
  const ended = rig.wait({ session: "a", turnId: "3" }).finally(() => rig.release("end"));
  let over = false;
  void ended.then(() => (over = true)).catch(() => (over = true));
  while (!over) await rig.wait(await rig.send("busy", { sleep: 20 }));
  await ended;

  const rows = rig.journal.rows({ session: "a" });
  assert.equal(
    rows.map((row) => `${row.turnId} ${row.outcome}`),
    ["1 failed", "1 failed", "1 answered", "2 answered", "3 answered"],
  );
  onePrefix(rows);
  const busy = rig.journal.rows({ session: "busy" });
  for (const [i, row] of rows.slice(0, 2).entries()) {
    const pause = [row.endedAt as number, (rows[i + 1] as typeof row).startedAt] as const;
    const within = busy.filter(({ startedAt, endedAt }) => startedAt >= pause[0] && endedAt !== null && endedAt <= pause[1]);
    assert.ok(within.length >= 3, `the other session had ${within.length} turns during back-off ${i + 1} of ${pause[1] - pause[0]} ms`);
  }
  const document = await (await rig.host()).turns.get({ session: "a", turnId: "1" });
  assert.equal(
    document.turn.attempts.map(({ number, error }) => [number, error.code]),
    [
      [1, "model_failed"],
      [2, "model_failed"],
    ],
  );
}

async function aBadTurnLeavesNoHalfRecord(rig: Rig): Promise<void> {
  await rig.workers(2, { bots: [{ name: "ada", attempts: 2 }] });
  await rig.send("s", {}, "1");
  await rig.send("s", { fail: 2, half: true }, "2");
  await rig.send("s", { tool: {}, fail: 2, atStep: 2 }, "3");
  for (const turnId of ["4", "5"]) await rig.send("s", {}, turnId);
  await rig.wait({ session: "s", turnId: "5" });
  assert.equal(await ends(rig, "s"), ["1 done", "2 dead", "3 dead", "4 done", "5 done"]);

  const entries = await rig.entries("s");
  assert.not.match(JSON.stringify(entries), "half an", "half-streamed text was recorded");
  assert.equal(
    entries.filter((entry) => entry.turn?.turnId === "2").map((entry) => [entry.kind, entry.messages.length]),
    [["dead", 0]],
  );
  const after = entries.find((entry) => entry.turn?.turnId === "4");
  assert.equal(
    after?.messages.map((message) => message.role),
    ["tool", "user", "assistant"],
    "the open tool call of turn 3 is closed in the next step",
  );

  const { deadLetters } = await rig.host();
  const letter = await deadLetters.get("s", "2");
  assert.equal([letter.cause.code, letter.attempts.length, letter.waitingBehind], ["model_failed", 2, 0]);
  assert.ok(letter.cause.stack !== undefined && letter.attempts.every(({ worker }) => worker !== ""));
  await listed(rig, ["2", "3"]);
  const replay = await deadLetters.replay("s", "2", { by: "test" });
  assert.equal((await rig.wait(replay)).outcome, "done");
  assert.equal((await ends(rig, "s")).at(-1), "2~1 done");
  await listed(rig, ["3"]);
  await (await rig.host()).sessions.verify("s");
}

async function cancelQueuedRunningAndInBackOff(rig: Rig): Promise<void> {
  await rig.workers(2);
  const { turns } = await rig.host();
  const running = (turnId: string, count = 1) => rig.journal.until(`${turnId} runs`, (journal) => journal.rows({ turnId }).length >= count);
  await rig.send("s", { hold: "never" }, "running");
  await rig.send("s", {}, "queued");
  await running("running");
  assert.equal(await turns.cancel({ session: "s", turnId: "queued" }), { outcome: "cancelled" });
  assert.equal(await turns.cancel({ session: "s", turnId: "running" }), { outcome: "cancelled" });
  await rig.journal.until("the call is given up", (journal) => journal.rows({ turnId: "running" })[0]?.outcome === "aborted");

  await rig.send("s", { tool: { hold: "never" } }, "with steps");
  await rig.journal.until("the tool runs", (journal) => journal.remarks("tool").length === 1);
  assert.equal(await turns.cancel({ session: "s", turnId: "with steps" }), { outcome: null });
  assert.equal((await rig.wait({ session: "s", turnId: "with steps" })).outcome, "cancelled");

  await rig.send("s", { fail: 2 }, "backing off");
  await running("backing off", 2);
  await rig.journal.until("it failed twice", (journal) => journal.rows({ turnId: "backing off" })[1]?.outcome === "failed");
  assert.equal(await turns.cancel({ session: "s", turnId: "backing off" }), { outcome: "cancelled" });
  await rig.wait(await rig.send("s", {}, "last"));

  assert.equal(await ends(rig, "s"), [
    "queued cancelled",
    "running cancelled",
    "with steps cancelled",
    "backing off cancelled",
    "last done",
  ]);
  assert.is(rig.journal.rows({ turnId: "queued" }).length, 0);
  assert.equal(await turns.cancel({ session: "s", turnId: "last" }), { outcome: "done" }, "what has an outcome keeps it");
  onePrefix(rig.journal.rows());
}

/** Cancels sweep over the end of short turns: whoever is first, there is one outcome, and the one that the cancel was told. */
async function cancelRacesTheEnd(rig: Rig): Promise<void> {
  await rig.workers(2);
  const { turns } = await rig.host();
  const told: string[] = [];
  const session = "race";
  await rig.wait(await rig.send(session));
  for (let round = 0; round < 20; round += 1) {
    const turn = await rig.send(session, { sleep: 5 }, `r${round}`);
    const went = rig.journal.until("it runs", (journal) =>
      journal.rows({ turnId: turn.turnId }).some((row) => round % 4 === 0 || row.endedAt !== null || round % 4 === 1),
    );
    await went;
    for (let pause = 0; pause < round; pause += 1) await new Promise((resolve) => setImmediate(resolve));
    const { outcome } = await turns.cancel(turn);
    const end = await rig.wait(turn);
    assert.ok(outcome === null || outcome === end.outcome, `told ${outcome}, ended ${end.outcome}`);
    told.push(`r${round} ${end.outcome}`);
  }
  assert.equal((await ends(rig, session)).slice(1), told);
  inOrder(rig.journal.rows({ session }), new Map([[session, rig.journal.rows({ session }).map((row) => row.turnId)]]));
}

async function parkWaitsForReplayOrDiscard(rig: Rig): Promise<void> {
  const [hosts] = await Promise.all([rig.hostProcesses(2), rig.workers(2, { bots: [{ name: "ada", attempts: 1, onDead: "park" }] })]);
  const { deadLetters, sessions } = await rig.host();
  for (const session of ["replayed", "discarded"]) {
    await rig.send(session, { fail: 1 }, "bad");
    await rig.send(session, {}, "behind");
    assert.is((await rig.wait({ session, turnId: "bad" })).outcome, "dead");
    const letter = await deadLetters.get(session, "bad");
    assert.equal([letter.parks, letter.waitingBehind, (await sessions.get(session)).state], [true, 1, "parked"]);
  }
  await rig.wait(await rig.send("beside"));
  assert.is(rig.journal.rows({ turnId: "behind" }).length, 0, "nothing runs behind a parked turn");

  const replays = await Promise.all(
    hosts.flatMap((host) => [1, 2].map(() => host.call("deadLetters", "replay", "replayed", "bad", { by: host.name }))),
  );
  assert.equal(replays.map(({ already }) => already).sort(), [false, true, true, true]);
  assert.equal(new Set(replays.map(({ generation, number }) => `${generation} ${number}`)), new Set(["1 3"]));
  await hosts[0]?.call("deadLetters", "discard", "discarded", "bad");
  await rig.waitAll([
    { session: "replayed", turnId: "behind" },
    { session: "discarded", turnId: "behind" },
  ]);
  assert.equal(await ends(rig, "replayed"), ["bad dead", "bad~1 done", "behind done"]);
  assert.equal(await ends(rig, "discarded"), ["bad dead", "behind done"]);
  await listed(rig, []);
}

together(test, {
  "B2: a retry keeps its place, its slot serves others, and the other session never waits for it": inRig("b2", aRetryKeepsItsPlace),
  "E8: a turn that fails half-said is a dead letter, leaves no half record, and its replay works": inRig("e8", aBadTurnLeavesNoHalfRecord),
  "I4 cancel: queued, running without steps, running with steps, in a back-off": inRig("cancel", cancelQueuedRunningAndInBackOff),
  "I4 cancel racing the end of a turn gives one outcome, the one it was told": inRig("race", cancelRacesTheEnd),
  "park: a dead turn holds its session until a replay, one for two operators in two processes, or a discard": inRig(
    "park",
    parkWaitsForReplayOrDiscard,
  ),
});

test.run();
