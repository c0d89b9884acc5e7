/** Faults that were reported of systems like this one, by their ids: clocks, tool order, re-read files, listings, speakers in the head. */
import { z } from "zod";
import { sortTools } from "../../src/domain/prefix.ts";
import { memoryRepository } from "../../src/testing/memory-repository.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { gitWorld } from "../support/git-world.ts";
import {
  firstBreak,
  firstChange,
  inFakeTime,
  inWorld,
  lastMessage,
  promptSection,
  sequenceOf,
  systemTexts,
  type World,
} from "../support/scenario.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("cases of the prefix");

function sections(world: World, session: string): Buffer[] {
  return world.bodies(session).map(promptSection);
}

/** One for a session whose prefix never changed. */
function prefixHashes(world: World, session: string): number {
  return new Set(world.entries(session).map(({ prefixSha256 }) => prefixSha256)).size;
}

const tool = (name: string) => defineTool({ name, description: `Does ${name}.`, input: z.object({}), run: () => "ok" });

test(
  "A1: six turns across a second, a minute, an hour, midnight and a month end, in another time zone on the second worker: one prefix",
  inFakeTime(
    async (world, clock) => {
      const zone = process.env.TZ;
      const bot = () => world.bot({ memory: memoryRepository({ "PERSONA.md": "You are Ada.\n" }), tools: [tool("clock")] });
      try {
        process.env.TZ = "America/New_York";
        const offset = new Date(clock.now()).getTimezoneOffset();
        await world.worker([bot()]);
        for (const ms of [0, 1_000, 60_000]) {
          await clock.advance(ms);
          await world.say("s", "what time is it?");
        }
        process.env.TZ = "Asia/Tokyo";
        assert.is.not(new Date(clock.now()).getTimezoneOffset(), offset, "the zone did change");
        await world.restart([bot()]);
        for (const ms of [60 * 60_000, 24 * 60 * 60_000, 32 * 24 * 60 * 60_000]) {
          await clock.advance(ms);
          await world.say("s", "and now?");
        }
      } finally {
        if (zone === undefined) delete process.env.TZ;
        else process.env.TZ = zone;
      }
      assert.is(world.bodies("s").length, 6);
      assert.is(firstChange(sections(world, "s")), null);
      assert.is(prefixHashes(world, "s"), 1);
      assert.not.match(world.bodies("s").at(-1) as string, /202[0-9]|\d\d:\d\d/, "no clock anywhere");
    },
    Date.UTC(2026, 0, 31, 23, 58, 59, 500),
  ),
);

// `ä` cannot stand in a tool's name (`defineTool` refuses what providers refuse), so code units and locale are told
// apart by upper case, digits and the underscore: a locale puts `a_1` before `a1` and `Beta` behind `alpha`.
const names = ["zeta", "alpha", "mu", "Beta", "a1", "a_1", "10", "2"];
const byCodeUnit = ["10", "2", "Beta", "a1", "a_1", "alpha", "mu", "zeta"];

function toolNames(body: string): string[] {
  return (JSON.parse(body) as { tools: { name: string }[] }).tools.map(({ name }) => name);
}

test(
  "A2: tools are ordered by code unit, whatever order they were registered in; a real change is said once and changes no byte",
  inWorld(async (world) => {
    assert.not.equal(
      [...names].sort((a, b) => a.localeCompare(b, "en")),
      byCodeUnit,
      "the control: a locale would order them otherwise",
    );
    assert.equal(
      sortTools(names.map(tool)).map(({ name }) => name),
      byCodeUnit,
    );
    assert.throws(() => tool("ä"), /must match/);
    const tools = names.map(tool);
    await world.worker([world.bot({ tools })]);
    await world.say("s", "one");
    await world.restart([world.bot({ tools: tools.toReversed() })]);
    await world.say("s", "two");
    assert.equal(world.logged("frozen_tools_differ"), [], "another order is no change");
    await world.restart([world.bot({ tools: tools.slice(1) })]);
    await world.say("s", "three");
    await world.say("s", "four");
    assert.is(world.logged("frozen_tools_differ").length, 1, "dropped: said once");
    assert.is(world.logged("frozen_tools_differ")[0]?.data.session, "s");
    await world.restart([world.bot({ tools: [...tools.slice(1), tools[0] as (typeof tools)[0]] })]);
    await world.say("s", "five");
    assert.is(world.logged("frozen_tools_differ").length, 1, "added again: nothing to say");
    assert.equal(toolNames(world.bodies("s")[0] as string), byCodeUnit);
    assert.is(firstChange(sections(world, "s")), null);
    assert.is(firstBreak(world.bodies("s")), null);
  }),
);

test(
  "A4: PERSONA.md edited and committed while all workers are gone: the old session's head stays, its next turn has one notice",
  inWorld(async (world) => {
    const git = gitWorld();
    try {
      git.edit("PERSONA.md", "You are Ada.\n");
      git.commit("one");
      const bot = () => world.bot({ memory: git.another() });
      await world.worker([bot()]);
      await world.worker([bot()]);
      await world.say("old", "one");
      await world.restart([]);
      git.edit("PERSONA.md", "You are Ada, renewed.\n");
      git.commit("two");
      await world.restart([bot()]);
      await world.say("old", "two");
      await world.say("new", "one");
      assert.is(firstChange(sections(world, "old")), null);
      assert.is(firstBreak(world.bodies("old")), null);
      const [notice, input, ...more] = lastMessage(world.bodies("old")[1] as string);
      assert.match(notice as string, /since you last heard of it\.\nmodified: "PERSONA\.md"\n<\/headfast:notice>$/);
      assert.equal([input, more], ["two", []]);
      assert.is(systemTexts(world.bodies("new")[0] as string).at(-1), "You are Ada, renewed.\n");
      assert.equal(lastMessage(world.bodies("new")[0] as string), ["one"], "to the new one it is no news");
    } finally {
      git.dispose();
    }
  }),
);

/** What a person does before turn n, and whether that is news. */
const edits: Record<number, (git: ReturnType<typeof gitWorld>) => void> = {
  2: (git) => git.edit("draft.md", "dirty"),
  5: (git) => {
    git.edit("added.md", "x");
    git.commit("add");
  },
  9: (git) => {
    git.rename("added.md", "renamed.md");
    git.edit("draft.md", "dirtier");
    git.commit("rename");
  },
  14: (git) => {
    git.remove("renamed.md");
    git.commit("delete");
    git.edit("again.md", "dirty");
  },
};

test(
  "A5: twenty turns with three commits and dirty edits: one prefix, each notice in its own turn's tail only, the common prefix never shrinks",
  inWorld(async (world) => {
    const git = gitWorld();
    try {
      git.edit("PERSONA.md", "You are Ada.\n");
      git.commit("begin");
      const bot = () => world.bot({ memory: git.another() });
      await world.worker([bot()]);
      for (let turn = 1; turn <= 20; turn += 1) {
        edits[turn]?.(git);
        if (turn === 12) await world.restart([bot()]);
        await world.say("s", `turn ${turn}`);
      }
      const bodies = world.bodies("s");
      assert.is(bodies.length, 20);
      assert.is(prefixHashes(world, "s"), 1);
      assert.is(firstChange(sections(world, "s")), null);
      assert.is(firstBreak(bodies), null);
      const told = bodies.map((body, i) => (lastMessage(body).length > 1 ? i + 1 : 0)).filter((turn) => turn > 0);
      assert.equal(told, Object.keys(edits).map(Number), "a notice where something changed, and nowhere else");
      const counts = bodies.map((body) => body.split("<headfast:notice>").length - 1);
      assert.equal(
        counts,
        bodies.map((_, i) => told.filter((turn) => turn <= i + 1).length),
        "and there it stays",
      );
      assert.match(lastMessage(bodies[8] as string)[0] as string, /modified: "draft\.md"\nrenamed: "added\.md" -> "renamed\.md"/);
    } finally {
      git.dispose();
    }
  }),
);

test(
  "A11: three people in one session, one renamed in between, one with rules of her own: one prefix, and each stands in his turn as said then",
  inWorld(async (world) => {
    await world.worker([world.bot()]);
    const { inbox } = await world.first();
    for (let n = 0; n < 9; n += 1) {
      const user = { id: `u${n % 3}`, name: n % 3 === 1 && n > 4 ? "Grace Hopper" : `Name${n % 3}` };
      if (n % 3 === 2) await inbox.post({ session: "s", text: `u2 asked for short answers (${n})` });
      await world.say("s", `said ${n}`, { user });
      const tail = lastMessage(world.bodies("s")[n] as string);
      assert.is(tail.length, n % 3 === 2 ? 2 : 1);
      assert.is(tail.at(-1), `<headfast:user id="${user.id}" name=${JSON.stringify(user.name)}/>\nsaid ${n}`);
    }
    const bodies = world.bodies("s");
    assert.is(prefixHashes(world, "s"), 1);
    assert.is(firstChange(sections(world, "s")), null);
    assert.is(firstBreak(bodies), null);
    for (const section of sections(world, "s")) assert.not.match(section.toString(), /u[012]|Name|Grace|short answers/);
    const all = sequenceOf(bodies.at(-1) as string);
    assert.equal(
      [all.split('name=\\"Name1\\"').length - 1, all.split('name=\\"Grace Hopper\\"').length - 1],
      [2, 1],
      "the earlier name stays as said",
    );
  }),
);

test.run();
