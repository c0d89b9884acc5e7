/** I5 and I6: one owner, and the first snapshot wins. */
import type { Bot } from "../../src/domain/ports.ts";
import type { Script } from "../../src/models/script.ts";
import { memoryRepository } from "../../src/testing/memory-repository.ts";
import { refusal } from "../support/refusal.ts";
import { firstChange, gate, inFakeTime, inWorld, promptSection, sequenceOf, systemTexts, until } from "../support/scenario.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("invariants of ownership");

test(
  "I5: of many bots that claim one session one wins, and each other is told who",
  inWorld(async (world) => {
    const hosts = [await world.host(), await world.host()];
    const bots = Array.from({ length: 32 }, (_, n) => `bot-${n}`);
    const claims = await Promise.allSettled(bots.map((bot, n) => (hosts[n % 2] as (typeof hosts)[0]).sessions.claim("s", bot)));
    const owner = world.owner("s")?.bot;
    assert.is(claims.filter(({ status }) => status === "fulfilled").length, 1);
    for (const claim of claims)
      if (claim.status === "rejected") assert.equal([claim.reason.code, claim.reason.data.owner], ["ownership_conflict", owner]);
    const error = await refusal((hosts[0] as (typeof hosts)[0]).turns.send({ bot: "stranger", session: "s", turnId: "1", input: "mine?" }));
    assert.is(error.code, "ownership_conflict");
    assert.equal(world.turns("s"), [], "nothing was accepted");
  }),
);

test(
  "I5: a turn in flight under the old owner does not commit but starts again under the new one; what is queued stays queued",
  inWorld(async (world) => {
    const asked = gate();
    const answer = gate();
    const held: Script = async ({ lastUserText }) => {
      asked.open();
      await answer.opened;
      return `ada: ${lastUserText}`;
    };
    const bob = world.bot({ name: "bob", model: world.model(({ lastUserText }) => `bob: ${lastUserText}`) });
    await world.worker([world.bot({ model: world.model(held) }), bob]);
    const host = await world.first();
    const first = await host.turns.send({ bot: "ada", session: "s", turnId: "1", input: "one" });
    const second = await host.turns.send({ bot: "ada", session: "s", turnId: "2", input: "two" });
    await asked.opened;
    await host.sessions.reown("s", "bob", { by: "Grace", why: "Ada left" });
    answer.open();
    assert.equal([(await host.turns.wait(first)).text, (await host.turns.wait(second)).text], ["bob: one", "bob: two"]);
    const [reowned, ...steps] = world.entries("s");
    assert.equal([reowned?.kind, reowned?.by, reowned?.why], ["reowned", "Grace", "Ada left"]);
    assert.equal(
      steps.map(({ checkpoint }) => checkpoint.bot),
      ["bob", "bob"],
    );
  }),
);

test(
  "I6: two workers race for the first assembly: the first snapshot wins, and both use what was stored",
  inWorld(async (world) => {
    const reading = gate();
    const go = gate();
    const slow = memoryRepository({ "PERSONA.md": "Read early, stored late.\n" });
    const early: Bot["memory"] = {
      ...slow,
      files: slow.files,
      look: () => slow.look(),
      persona: async () => {
        const persona = await slow.persona();
        reading.open();
        await go.opened;
        return persona;
      },
    };
    const stale = await world.worker([world.bot({ memory: early })], 1); // full: it takes no second stay
    const host = await world.first();
    const sent = await host.turns.send({ bot: "ada", session: "s", turnId: "1", input: "hello" });
    await reading.opened;
    await world.worker([world.bot({ memory: memoryRepository({ "PERSONA.md": "Stored first.\n" }) })]);
    world.queues.vanish("s", true); // the first worker lost its lease and does not know
    await until("the second one is done", () => world.entries("s").length > 0);
    go.open();
    await host.turns.wait(sent);
    await world.stop(stale);
    await world.say("s", "again");
    assert.is(world.owner("s")?.personaSnapshot, "Stored first.\n");
    assert.is(firstChange(world.bodies("s").map((body) => promptSection(sequenceOf(body)))), null);
    for (const body of world.bodies("s")) assert.is(systemTexts(body).at(-1), "Stored first.\n");
  }),
);

test(
  "I6: not taken, empty, not ready and not owned are four different answers",
  inWorld(async (world) => {
    const { sessions } = await world.first();
    const answers: Record<string, unknown> = { "not owned": (await refusal(sessions.prefix("s"))).code };
    await sessions.claim("s", "ada");
    answers["not taken"] = await sessions.prefix("s");
    const memory = memoryRepository();
    memory.unready("no folder");
    await world.worker([world.bot({ memory })]);
    await world.say("s", "one");
    answers["not ready"] = (await sessions.prefix("s"))?.persona;
    memory.unready(null);
    await world.say("s", "two");
    answers.empty = (await sessions.prefix("s"))?.persona;
    assert.equal(answers, { "not owned": "session_not_found", "not taken": null, "not ready": null, empty: "" });
    const baselines = world.entries("s").map(({ checkpoint }) => checkpoint.baseline);
    assert.equal(baselines, [0, 1]);
  }),
);

test(
  "I6: a read that fails is an error, never an empty persona: the turn waits, and no attempt is spent",
  inFakeTime(async (world, clock) => {
    const memory = memoryRepository({ "PERSONA.md": "You are Ada.\n" });
    memory.breakWith("permission denied");
    await world.worker([world.bot({ memory })]);
    const said = world.say("s", "hello");
    await until("the read has failed", () => world.logged("memory_unreadable").length > 0);
    assert.is(world.owner("s")?.baseline, null);
    assert.equal(world.requests, []);
    memory.breakWith(null);
    await clock.advance(5_000);
    assert.is((await said).outcome, "done");
    assert.is(world.turns("s")[0]?.attemptsSpent, 0);
    assert.is(systemTexts(world.bodies("s")[0] as string).at(-1), "You are Ada.\n");
  }),
);

test.run();
