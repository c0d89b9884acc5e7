/** One activation at a time, by hand: which turn is the head, how the activation ends, what it leaves (rules 1, 2, 15, 18; I3, I4, I12). */
import { Worker } from "../../src/actors/worker.ts";
import { claimSession } from "../../src/domain/acceptance.ts";
import { parkedAt, withNext, withOutcome } from "../../src/domain/checkpoint.ts";
import { HeadfastError } from "../../src/domain/errors.ts";
import { limits } from "../../src/domain/limits.ts";
import type { ActivationEnd, Lease, Logger } from "../../src/domain/ports.ts";
import { defineBot, silentLogger } from "../../src/main.ts";
import { fail, hang, later, type Script } from "../../src/models/script.ts";
import { type ScriptedModel, scriptedModel } from "../../src/models/scripted.ts";
import type { FakeClock } from "../../src/testing/fake-clock.ts";
import { type MemoryQueues, memoryQueues } from "../../src/testing/memory-queues.ts";
import { accepted, append, deadOf, type TestLedger, testLedger } from "../support/ledger.ts";
import { until } from "../support/scenario.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("session actor");

interface Bench {
  ledger: TestLedger;
  queues: MemoryQueues;
  worker: Worker;
  model: ScriptedModel;
  clock: FakeClock;
  /** One activation of session `s`. */
  activate(more?: Partial<Lease>): Promise<ActivationEnd>;
  /** `turnId#generation outcome`, in the log's order. */
  outcomes(): string[];
}

function bench(
  script: Script = "ok ".repeat(200).trim().split(" "),
  more: { onDead?: "park"; attempts?: number; name?: string } = {},
  log: Logger = silentLogger,
): Bench {
  const ledger = testLedger();
  const queues = memoryQueues({ system: ledger.system });
  const model = scriptedModel(script);
  const bot = defineBot({ name: "ada", model, ...more });
  const worker = new Worker({ ledger, queues, bots: [bot], log, concurrency: 1, observeEveryMs: 0 });
  const lease: Lease = { session: "s", signal: new AbortController().signal, stall: { job: "j", count: 0, excused: false }, fresh: false };
  return {
    ledger,
    queues,
    worker,
    model,
    clock: ledger.system as FakeClock,
    activate: (other) => worker.activate({ ...lease, ...other }),
    outcomes: () =>
      ledger.store
        .contents()
        .entries.flatMap(({ turn, outcome }) => (outcome === null ? [] : [`${turn?.turnId}#${turn?.generation} ${outcome}`])),
  };
}

test("an unknown session, and one without turns, are idle at once and leave nothing", async () => {
  const { ledger, activate } = bench();
  assert.equal(await activate(), { kind: "idle" });
  assert.equal(ledger.store.contents().ownership, []);
  await claimSession(ledger, "s", "ada");
  assert.equal(await activate(), { kind: "idle" });
  assert.equal([ledger.store.contents().entries, ledger.store.contents().ownership[0]?.baseline], [[], null]);
});

test("rule 1: numbers decide, the queue is only a hint: it may be empty, reordered or hold what is done", async () => {
  const { ledger, queues, activate, outcomes } = bench();
  const [a, b, c] = [await accepted(ledger, "a"), await accepted(ledger, "b"), await accepted(ledger, "c")];
  for (const turn of [c, a]) await queues.enqueue(turn);
  assert.equal(await activate({ fresh: true }), { kind: "idle" });
  assert.equal(outcomes(), ["a#0 done", "b#0 done", "c#0 done"]);
  assert.is(queues.mailboxes.size, 0, "what has an outcome is removed");
  await queues.enqueue(b);
  await activate({ fresh: true });
  assert.equal([outcomes().length, queues.mailboxes.size], [3, 0], "added again: removed, not run");
});

test("rule 2: a turn with a step and no outcome is the head, whatever numbers and lists say", async () => {
  const { ledger, activate, outcomes } = bench();
  const [, b] = [await accepted(ledger, "a"), await accepted(ledger, "b")];
  const c = await accepted(ledger, "c");
  await append(ledger, ({ checkpoint }) => ({
    kind: "next",
    worker: "w",
    checkpoint: { ...withNext(checkpoint, c.number), open: { number: b.number, turnId: "b", generation: 0, steps: 1 } },
  }));
  await activate();
  assert.equal(outcomes(), ["b#0 done", "c#0 done", "a#0 done"]);
});

test("rule 18: a parked session runs the next generation of that turn, and nothing else", async () => {
  const { ledger, activate, outcomes } = bench();
  const a = await accepted(ledger, "a");
  await accepted(ledger, "b");
  await append(ledger, ({ checkpoint }) => ({
    ...deadOf(a)({ seq: 0, hash: "", checkpoint }),
    checkpoint: parkedAt(withOutcome(checkpoint, a.number), a),
  }));
  assert.equal(await activate(), { kind: "idle" });
  assert.equal(outcomes(), ["a#0 dead"]);
  await ledger.store.turns.insert({ ...a, number: 3, generation: 1, writer: "op" });
  await activate();
  assert.equal(outcomes(), ["a#0 dead", "a#1 done", "b#0 done"]);
});

test("a failed attempt delays the session, and an activation before it is due delays itself by the rest (rule 15)", async () => {
  const { ledger, clock, activate, outcomes } = bench([fail("broken"), "ok"]);
  await accepted(ledger, "a");
  assert.equal(await activate(), { kind: "delay", ms: 1_250, reason: "model_failed" });
  await clock.advance(250);
  assert.equal(await activate(), { kind: "delay", ms: 1_000, reason: "not due yet" });
  await clock.advance(1_000);
  assert.equal(await activate(), { kind: "idle" });
  assert.equal(
    [outcomes(), ledger.store.contents().turns[0]?.attempts.map(({ number, error }) => [number, error.code])],
    [["a#0 done"], [[1, "model_failed"]]],
  );
});

test("I12: later, an outage and a read that fails each put the session off without an attempt", async () => {
  const { ledger, activate } = bench([later(3_000)]);
  await accepted(ledger, "a");
  assert.equal(await activate(), { kind: "delay", ms: 3_000, reason: "model_later" });
  ledger.store.mode = "fail_before";
  const end = await activate();
  assert.equal([end.kind, "reason" in end && end.reason], ["delay", "store_unavailable"]);
  assert.is(ledger.store.contents().turns[0]?.attemptsSpent, 0);
});

test("attempts end: the turn is dead with its cause, the letter is put, the next turn runs; with `park` the session stops there", async () => {
  for (const onDead of [undefined, "park"] as const) {
    const script: Script = ({ turnId }) => (turnId === "a" ? fail("broken") : "ok");
    const { ledger, queues, activate, outcomes } = bench(script, { attempts: 1, ...(onDead && { onDead }) });
    await accepted(ledger, "a");
    await accepted(ledger, "b");
    assert.equal(await activate(), { kind: "idle" });
    assert.equal(outcomes(), onDead === "park" ? ["a#0 dead"] : ["a#0 dead", "b#0 done"]);
    assert.is(ledger.store.contents().entries[0]?.parks, onDead === "park");
    assert.is((await queues.letters.list(10)).length, 1);
  }
});

test("a bot that is not served here: put back, counted, nothing written", async () => {
  const { ledger, worker, activate } = bench(undefined, { name: "bob" });
  await accepted(ledger, "a");
  assert.equal(await activate(), { kind: "delay", ms: limits.unservedMs, reason: "bot ada is not served here" });
  assert.is(worker.counts.get("unserved"), 1);
  assert.equal(ledger.store.contents().entries, []);
});

test("rule 19: a turn of a newer release stays untouched, costs no attempt, is told once per session and counted each time", async () => {
  const warned: string[] = [];
  const note = (_data: unknown, message: string): void => void warned.push(message);
  const { ledger, queues, worker, activate, outcomes } = bench(undefined, {}, { ...silentLogger, warn: note, error: note });
  await queues.enqueue(await accepted(ledger, "a"));
  queues.activations.takeHint("s");
  const before = structuredClone(queues.mailboxes);
  const { peek } = queues;
  queues.peek = async () => {
    throw new HeadfastError("version_ahead", "job a~0 has schema_version 2, this release knows 1; upgrade this worker");
  };
  const late = { kind: "delay", ms: limits.aheadMs, reason: "version_ahead" };
  assert.equal([await activate(), await activate(), await activate()], [late, late, late]);
  assert.equal([warned.length, worker.counts.get("version_ahead")], [1, 3]);
  assert.equal([queues.mailboxes, ledger.store.contents().entries, ledger.store.contents().turns[0]?.attemptsSpent], [before, [], 0]);
  assert.equal([(await activate({ session: "other" })).kind, warned.length], ["delay", 2], "each session is told");
  queues.peek = peek;
  assert.equal([await activate(), outcomes()], [{ kind: "idle" }, ["a#0 done"]]);
});

test("a lost lease ends the activation and inserts nothing more; a drain hands the session over", async () => {
  for (const [code, end] of [
    ["lease_lost", "idle"],
    ["draining", "handover"],
  ] as const) {
    const { ledger, activate } = bench([hang()]);
    await accepted(ledger, "a");
    const lease = new AbortController();
    const running = activate({ signal: lease.signal });
    await until("it is frozen, so the call is next", () => ledger.store.contents().ownership[0]?.baseline === 1);
    lease.abort(new HeadfastError(code, "gone"));
    assert.equal(await running, { kind: end });
    assert.equal([ledger.store.contents().entries, ledger.store.contents().turns[0]?.attemptsSpent], [[], 0]);
  }
});

test("after its share of turns an activation yields, with nothing left behind", async () => {
  const { ledger, activate, outcomes } = bench();
  for (let n = 0; n < limits.turnsPerActivationMax + 3; n += 1) await accepted(ledger, `${n}`);
  assert.equal(await activate(), { kind: "yield" });
  assert.is(outcomes().length, limits.turnsPerActivationMax);
  assert.equal(await activate(), { kind: "idle" });
  assert.is(outcomes().length, limits.turnsPerActivationMax + 3);
});

test("rule 13: a takeover that nothing excuses is one crash, each stall once, and at the limit the turn is dead without a call", async () => {
  const { ledger, model, activate, outcomes } = bench(() => hang());
  await accepted(ledger, "a");
  const crash = async (count: number, excused = false): Promise<number | undefined> => {
    const lease = new AbortController();
    const calls = model.calls;
    const running = activate({ stall: { job: "j", count, excused }, signal: lease.signal });
    await until("its call is in flight", () => model.calls > calls);
    lease.abort(new HeadfastError("lease_lost", "as a crash leaves it: nothing is written from here on"));
    await running;
    return ledger.store.contents().turns[0]?.crashes;
  };
  assert.equal([await crash(0), await crash(1), await crash(1)], [0, 1, 1], "the same stall is charged once");
  assert.equal([await crash(2, true), await crash(3), await crash(4), await crash(5)], [1, 2, 3, 4], "an excused one is not charged");
  const times = { startedAt: "2026-12-01T10:00:00.000Z", endedAt: "2026-12-01T10:00:09.000Z" };
  const error = { code: "model_failed", message: "broken" };
  await ledger.store.turns.addAttempt("s", 1, { number: 1, worker: "host/1/abc", ...times, error }, null);
  assert.equal(await activate({ stall: { job: "j", count: 6, excused: false } }), { kind: "idle" });
  const cause = ledger.store.contents().entries[0]?.cause;
  assert.equal([outcomes(), cause?.code, model.calls], [["a#0 dead"], "crash_limit", 7]);
  assert.match(cause?.message ?? "", `died 5 times while this turn, accepted at ${ledger.store.contents().turns[0]?.acceptedAt}, ran`);
  assert.match(cause?.message ?? "", `the last time worker ${ledger.worker}, found gone at ${new Date(ledger.system.now()).toISOString()}`);
  assert.match(cause?.message ?? "", `attempt 1 failed on worker host/1/abc at ${times.endedAt}. `);
});

test.run();
