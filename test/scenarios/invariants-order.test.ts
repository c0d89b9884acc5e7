/** I3 and I4: one at a time, in order, and exactly one outcome, with two workers and two hosts. */
import { HeadfastError } from "../../src/domain/errors.ts";
import type { Entry } from "../../src/domain/records.ts";
import { fail, type Script } from "../../src/models/script.ts";
import { firstBreak, gate, inFakeTime, inWorld, until, type World } from "../support/scenario.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("invariants of order and outcome");

/** `turnId#generation` of each outcome, in the log's order. */
function outcomes(world: World, session: string): string[] {
  return world
    .entries(session)
    .filter(({ outcome }) => outcome !== null)
    .map(named);
}

function named({ turn, outcome }: Entry): string {
  return `${turn?.turnId}#${turn?.generation} ${outcome}`;
}

/** Answers after a few turns of the event loop; notes every pair of calls of one session that overlap. */
function watched(overlaps: string[]): Script {
  const running = new Map<string, number>();
  return async ({ session, turnId, call }) => {
    const now = (running.get(session) ?? 0) + 1;
    running.set(session, now);
    if (now > 1) overlaps.push(`${session}/${turnId}`);
    for (let n = 0; n < call % 5; n += 1) await new Promise((resolve) => setImmediate(resolve));
    running.set(session, (running.get(session) ?? 0) - 1);
    return `re: ${turnId}`;
  };
}

test(
  "I3: turns of a session run one at a time in the order in which they were sent, whichever hosts sent them and workers run them",
  inWorld(async (world) => {
    const overlaps: string[] = [];
    const model = world.model(watched(overlaps));
    await world.worker([world.bot({ model })], 3);
    await world.worker([world.bot({ model })], 3);
    const hosts = [await world.host(), await world.host()];
    const sessions = Array.from({ length: 12 }, (_, n) => `s${n}`);
    const sendAll = async (session: string, first: number): Promise<void> => {
      for (let n = 0; n < 8; n += 1) await hosts[(first + n) % 2]?.turns.send({ bot: "ada", session, turnId: `${n}`, input: `say ${n}` });
    };
    await Promise.all(sessions.map(sendAll));
    for (const session of sessions) await hosts[0]?.turns.wait({ session, turnId: "7" });

    assert.equal(overlaps, []);
    const expected = Array.from({ length: 8 }, (_, n) => `${n}#0 done`);
    for (const session of sessions) {
      assert.equal(outcomes(world, session), expected);
      assert.is(firstBreak(world.bodies(session)), null);
    }
    const workers = new Set(sessions.flatMap((session) => world.entries(session).map(({ worker }) => worker)));
    assert.is(workers.size, 2, "both workers took part");
  }),
);

test(
  "I3: a turn sent while Redis was away for its host keeps its place before one sent later through another",
  inFakeTime(async (world, clock) => {
    const away = await world.host();
    const { enqueue } = world.queues;
    world.queues.enqueue = () => Promise.reject(new HeadfastError("queue_unavailable", "no Redis here"));
    const first = await away.turns.send({ bot: "ada", session: "s", turnId: "first", input: "1" });
    world.queues.enqueue = enqueue;
    assert.equal([first.inRedis, first.number], [false, 1]);
    await clock.advance(-86_400_000); // the other host's clock is a day behind: it decides nothing
    const host = await world.host();
    const second = await host.turns.send({ bot: "ada", session: "s", turnId: "second", input: "2" });
    await world.worker([world.bot()]);
    await host.turns.wait(second);
    assert.equal(outcomes(world, "s"), ["first#0 done", "second#0 done"]);
  }),
);

test(
  "I3: a retry keeps its place, and other sessions do not wait for its back-off",
  inFakeTime(async (world, clock) => {
    const script: Script = ({ turnId, session }) =>
      turnId === "1" && session === "s" && world.bodies("s").length < 3 ? fail("broken") : "ok";
    const bots = [world.bot({ model: world.model(script) })];
    await world.worker(bots, 1);
    await world.worker(bots, 1);
    const { turns } = await world.first();
    for (const turnId of ["1", "2", "3"]) await turns.send({ bot: "ada", session: "s", turnId, input: turnId });
    await until("the first attempt failed", () => world.turns("s")[0]?.attemptsSpent === 1);
    assert.is((await world.say("other", "hello")).outcome, "done", "while s waits");
    await clock.advance(10_000);
    await turns.wait({ session: "s", turnId: "3" });
    assert.equal(
      world.requests.filter(({ session }) => session === "s").map(({ turnId }) => turnId),
      ["1", "1", "1", "2", "3"],
    );
    assert.equal(outcomes(world, "s"), ["1#0 done", "2#0 done", "3#0 done"]);
  }),
);

test(
  "I4: the same turnId, sent four times at once by two hosts and again afterwards, is one turn with one outcome",
  inWorld(async (world) => {
    await world.worker([world.bot()]);
    await world.worker([world.bot()]);
    const hosts = [await world.host(), await world.host()];
    const request = { bot: "ada", session: "s", turnId: "42", input: "hello" };
    const sent = await Promise.all([0, 1, 0, 1].map((n) => hosts[n]?.turns.send(request)));
    assert.is(sent.filter((one) => one?.duplicate === false).length, 1);
    await hosts[0]?.turns.wait(request);
    const again = await hosts[1]?.turns.send(request);
    assert.equal([again?.duplicate, again?.state, again?.outcome], [true, "ended", "done"]);
    assert.is(world.turns("s").length, 1);
    assert.equal(outcomes(world, "s"), ["42#0 done"]);
    assert.is(world.requests.length, 1);
  }),
);

test(
  "I4: two workers that both believe they hold the session give one outcome: the later answer is dropped",
  inWorld(async (world) => {
    const asked = gate();
    const answer = gate();
    const held = world.model(async () => {
      asked.open();
      await answer.opened;
      return "from the one that lost its lease";
    });
    const stale = await world.worker([world.bot({ model: held })], 1);
    const { turns } = await world.first();
    await turns.send({ bot: "ada", session: "s", turnId: "1", input: "one" });
    await turns.send({ bot: "ada", session: "s", turnId: "2", input: "two" });
    await asked.opened;
    await world.worker([world.bot({ model: world.model(({ lastUserText }) => `fresh: ${lastUserText}`) })], 1);
    world.queues.vanish("s", true);
    const first = await turns.wait({ session: "s", turnId: "1" });
    answer.open();
    await world.stop(stale);
    await turns.wait({ session: "s", turnId: "2" });
    assert.is(first.text, "fresh: one");
    assert.equal(outcomes(world, "s"), ["1#0 done", "2#0 done"]);
    assert.not.match(JSON.stringify(world.entries("s")), /lost its lease/);
    assert.ok((stale.counts.get("fenced") ?? 0) > 0, "the log was the fence");
  }),
);

test(
  "I4: an answer whose insert was applied but not acknowledged is neither lost nor given twice",
  inWorld(async (world) => {
    const script: Script = () => {
      // The next write is the step's: its answer is lost after it was applied.
      const { insert } = world.store.log;
      world.store.log.insert = (entry) => {
        world.store.log.insert = insert;
        world.store.mode = "lose_answer";
        return insert(entry);
      };
      return "once";
    };
    await world.worker([world.bot({ model: world.model(script) })]);
    assert.is((await world.say("s", "one")).text, "once");
    assert.is(world.entries("s").length, 1);
    assert.is(world.requests.length, 1, "the call is paid for once");
  }),
);

test(
  "I4: a letter that two operators replay at once, on two hosts, is one next generation with one outcome",
  inWorld(async (world) => {
    let broken = true;
    await world.worker([world.bot({ attempts: 1, model: world.model(() => (broken ? fail("broken") : "mended")) })]);
    await world.say("s", "one", { turnId: "x" });
    await world.say("s", "two", { turnId: "y" });
    broken = false;
    const hosts = [await world.host(), await world.host()];
    const replays = await Promise.all(hosts.map(({ deadLetters }, n) => deadLetters.replay("s", "x", { by: `operator ${n}` })));
    assert.equal(
      replays.map(({ generation }) => generation),
      [1, 1],
    );
    assert.is((await hosts[0]?.turns.wait({ session: "s", turnId: "x" }))?.text, "mended");
    assert.is((await hosts[1]?.deadLetters.replay("s", "x"))?.already, true, "a third comes late and is told so");
    assert.equal(outcomes(world, "s"), ["x#0 dead", "y#0 dead", "x#1 done"]);
    assert.is((await hosts[1]?.deadLetters.get("s", "y"))?.cause.code, "model_failed", "the other letter still is one");
  }),
);

test(
  "I4: a cancel that races the end leaves one outcome, whichever was first",
  inWorld(async (world) => {
    const { turns } = await world.first();
    await world.worker([world.bot()]);
    await world.worker([world.bot()]);
    const kinds = new Set<string>();
    for (let n = 0; n < 40; n += 1) {
      const name = { session: `s${n % 5}`, turnId: `${n}` };
      await turns.send({ bot: "ada", input: "hello", ...name });
      for (let wait = 0; wait < n % 8; wait += 1)
        await new Promise((resolve) => (n % 2 === 0 ? setImmediate(resolve) : queueMicrotask(() => resolve(null))));
      const cancelled = await turns.cancel(name);
      const ended = await turns.wait(name);
      if (cancelled.outcome !== null) assert.is(ended.outcome, cancelled.outcome);
      kinds.add(ended.outcome);
      assert.is(world.entries(name.session).filter(({ turn, outcome }) => outcome !== null && turn?.turnId === name.turnId).length, 1);
    }
    assert.equal([...kinds].sort(), ["cancelled", "done"], "both sides won at times");
  }),
);

test.run();
