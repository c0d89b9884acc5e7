/** I10 to I13, and E7: what idles costs nothing, bad input and outages lose nothing, Redis can be lost whole. */
import { HeadfastError } from "../../src/domain/errors.ts";
import { limits } from "../../src/domain/limits.ts";
import { fail, later, type Script } from "../../src/models/script.ts";
import type { FakeClock } from "../../src/testing/fake-clock.ts";
import { memoryRepository } from "../../src/testing/memory-repository.ts";
import { refusal } from "../support/refusal.ts";
import { firstBreak, gate, inFakeTime, inWorld, until, type World } from "../support/scenario.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("invariants under outage");

test(
  "I10: an idle session has no key left in the queues, and a worker no timer but its reconciler's",
  inFakeTime(async (world, clock) => {
    const memory = memoryRepository();
    const worker = await world.worker([world.bot({ memory })]);
    await until("the start-up look is over", () => clock.sleepers === 1);
    const { inbox } = await world.first();
    await Promise.all(
      Array.from({ length: 50 }, async (_, n) => {
        await world.say(`s${n}`, "hello");
        await inbox.post({ session: `s${n}`, text: "a note" });
        await world.say(`s${n}`, "again");
      }),
    );
    await clock.advance(limits.flushMs);
    const { mailboxes, activations } = world.queues;
    assert.equal([mailboxes.size, activations.pending.size, activations.ready.length, world.queues.inbox.items.size], [0, 0, 0, 0]);
    assert.is(clock.sleepers, 1);
    await world.stop(worker);
    assert.is(clock.sleepers, 0);
    assert.equal(
      world.store.contents().turns.filter(({ open }) => open !== null),
      [],
      "nothing is left open for the reconciler",
    );
  }),
);

test(
  "I11: what cannot be run is refused whole when it is sent; what fails for good becomes a dead letter whole; the session goes on",
  inWorld(async (world) => {
    await world.worker([
      world.bot({ attempts: 1, model: world.model(({ lastUserText }) => (lastUserText === "break" ? fail("broken") : "ok")) }),
    ]);
    await world.say("s", "one");
    const { turns, deadLetters } = await world.first();
    const error = await refusal(turns.send({ bot: "ada", session: "s", turnId: "big", input: "x".repeat(limits.inputBytesMax + 1) }));
    assert.equal([error.code, error.data.field, error.data.bytesMax], ["input_too_large", "input", limits.inputBytesMax]);
    assert.is(world.turns("s").length, 1, "nothing half done");
    const user = { id: "u", name: "Grace" };
    assert.is((await world.say("s", "break", { turnId: "bad", user, deliverTo: "channel:7" })).outcome, "dead");
    const letter = await deadLetters.get("s", "bad");
    assert.equal([letter.input, letter.user, letter.deliverTo, letter.cause.code], ["break", user, "channel:7", "model_failed"]);
    assert.match(letter.cause.stack ?? "", /at /);
    assert.is(letter.attempts.length, 1);
    assert.is((await world.say("s", "three")).outcome, "done");
  }),
);

test(
  "I12: while MongoDB is away turns wait and spend no attempt",
  inFakeTime(async (world, clock) => {
    const { turns } = await world.first();
    await turns.send({ bot: "ada", session: "s", turnId: "1", input: "one" });
    let away = true;
    const { get } = world.store.ownership;
    world.store.ownership.get = (session) => (away ? Promise.reject(new HeadfastError("store_unavailable", "no primary")) : get(session));
    await world.worker([world.bot()]);
    await world.worker([world.bot()]);
    await clock.advance(60_000);
    assert.ok(world.logged("store_unavailable").length > 3, "it was tried again and again");
    assert.equal(world.entries("s"), []);
    away = false;
    const waiting = turns.wait({ session: "s", turnId: "1" });
    await clock.advance(limits.outageMsMax);
    assert.is((await waiting).outcome, "done");
    assert.equal(world.turns("s")[0]?.attempts, []);
  }),
);

test(
  "I12: a crash spends no attempt but has a limit of its own: a turn that kills its worker ends as a dead letter",
  inFakeTime(async (world, clock) => {
    const script: Script = ({ lastUserText }) => (lastUserText === "kill" ? { act: "hang" } : "ok");
    await world.worker([world.bot({ model: world.model(script) })]);
    const { turns } = await world.first();
    const killer = await turns.send({ bot: "ada", session: "s", turnId: "killer", input: "kill" });
    const behind = await turns.send({ bot: "ada", session: "s", turnId: "behind", input: "hello" });
    for (let crash = 1; crash <= limits.crashesMax; crash += 1) {
      await until("its call is in flight", () => world.requests.length === crash);
      world.queues.vanish("s");
      await clock.advance(1_000);
    }
    const ended = await turns.wait(killer);
    assert.equal([ended.outcome, ended.cause?.code], ["dead", "crash_limit"]);
    assert.equal([world.turns("s")[0]?.attemptsSpent, world.turns("s")[0]?.crashes], [0, limits.crashesMax]);
    assert.is((await turns.wait(behind)).outcome, "done");
  }),
);

/** Fifty sessions with three turns each, sent while nobody runs them. */
async function sendMany(world: World): Promise<void> {
  const { turns } = await world.first();
  for (let n = 0; n < 150; n += 1) await turns.send({ bot: "ada", session: `s${n % 50}`, turnId: `${Math.floor(n / 50)}`, input: `${n}` });
}

test(
  "I13: Redis is emptied with turns waiting and running: all are answered, once, in order",
  inFakeTime(async (world, clock) => {
    const go = gate();
    const slow: Script = async () => {
      await go.opened;
      return "ok";
    };
    await sendMany(world);
    await world.worker([world.bot({ model: world.model(slow) })], 10);
    await world.worker([world.bot({ model: world.model() })], 10);
    world.queues.empty();
    go.open();
    await clock.advance(3 * limits.reconcileMs);
    const { turns } = await world.first();
    for (let n = 0; n < 50; n += 1) {
      await turns.wait({ session: `s${n}`, turnId: "2" });
      assert.equal(
        world.entries(`s${n}`).map(({ turn, outcome }) => `${turn?.turnId} ${outcome}`),
        ["0 done", "1 done", "2 done"],
      );
      assert.is(
        firstBreak(
          world
            .entries(`s${n}`)
            .map(
              ({ turn }) =>
                world.requests.findLast((request) => request.session === `s${n}` && request.turnId === turn?.turnId)?.body ?? "",
            ),
        ),
        null,
      );
    }
  }),
);

test(
  "I13: with Redis away a send is acknowledged within 250 ms, says so, and is answered when it is back",
  inFakeTime(async (world, clock) => {
    const { enqueue } = world.queues;
    world.queues.enqueue = () => new Promise<void>(() => undefined); // a connection that says nothing
    await world.worker([world.bot()]);
    const { turns } = await world.first();
    const began = clock.now();
    const sending = turns.send({ bot: "ada", session: "s", turnId: "1", input: "hello" });
    await until("it is stored", () => world.turns("s").length === 1);
    await clock.advance(limits.redisSendMsMax);
    const sent = await sending;
    assert.equal([sent.inRedis, sent.state, clock.now() - began], [false, "queued", 250]);
    world.queues.enqueue = enqueue;
    const waiting = turns.wait(sent);
    await clock.advance(3 * limits.reconcileMs);
    assert.is((await waiting).outcome, "done");
  }),
);

// ── E7 ─────────────────────────────────────────────────────────────────────────────────────────────

const hours6 = 6 * 60 * 60_000;
/** What a provider may say, in milliseconds; undefined: it does not say when. And how long it is left alone then. */
const forms: readonly (readonly [string, number | undefined, number])[] = [
  ["3 s", 3_000, 3_000],
  ["absent", undefined, limits.laterMsDefault],
  ["0", 0, limits.outageMsMin],
  ["negative", -5_000, limits.laterMsDefault],
  ["6 h, capped", hours6, limits.laterMsMax],
  ["not a number", Number.NaN, limits.laterMsDefault],
];

interface Limited {
  /** When the provider was called, by clock. */
  calls: number[];
  script: Script;
}

function limited(clock: FakeClock, asked: number | undefined): Limited {
  const calls: number[] = [];
  const script: Script = () => {
    calls.push(clock.now());
    return calls.length <= 8 ? later(asked) : "at last";
  };
  return { calls, script };
}

for (const [name, asked, windowMs] of forms) {
  test(
    `E7: a provider that says later eight times (retry-after ${name}) burns no attempt and is called once a window`,
    inFakeTime(async (world, clock) => {
      const { calls, script } = limited(clock, asked);
      const free = world.bot({ name: "free", model: world.model(() => "ok", { limitKey: "other-account" }) });
      const worker = await world.worker([world.bot({ attempts: 3, model: world.model(script, { limitKey: "account" }) }), free], 4);
      const { turns } = await world.first();
      for (const session of ["a", "b", "c"])
        for (const turnId of ["1", "2"]) await turns.send({ bot: "ada", session, turnId, input: turnId });
      await until("the first call was refused", () => calls.length > 0);
      const atOnce = calls.length;
      assert.is((await world.say("elsewhere", "hello", { bot: "free" })).outcome, "done", "other keys and sessions go on");
      await until("no worker slot is held", () => [...world.queues.activations.pending.values()].every(({ state }) => state === "delayed"));
      await clock.advance(8 * windowMs + 60_000);
      for (const session of ["a", "b", "c"]) {
        assert.is((await turns.wait({ session, turnId: "2" })).text, "at last");
        assert.equal(
          world.entries(session).map(({ turn, outcome }) => `${turn?.turnId} ${outcome}`),
          ["1 done", "2 done"],
          "later turns waited behind",
        );
        assert.equal(
          world.turns(session).map(({ attemptsSpent }) => attemptsSpent),
          [0, 0],
        );
      }
      assert.ok(atOnce <= 3, "what was in flight together when the window began");
      const probes = [calls[0] as number, ...calls.slice(atOnce, 9)];
      for (const [i, at] of probes.entries())
        if (i > 0)
          assert.ok(at - (probes[i - 1] as number) >= windowMs, `probe ${i} came ${at - (probes[i - 1] as number)} ms after the last`);
      assert.ok((worker.counts.get("model_later") ?? 0) >= 8, "and counted");
    }),
  );
}

test.run();
