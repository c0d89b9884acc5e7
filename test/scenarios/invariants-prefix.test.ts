/** I1, I2 and I8: what stands before the first message, and what is said behind it. */
import { z } from "zod";
import type { Model } from "../../src/domain/ports.ts";
import { fail, later, refuse, type Script } from "../../src/models/script.ts";
import { memoryRepository } from "../../src/testing/memory-repository.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import {
  firstBreak,
  firstChange,
  inFakeTime,
  inWorld,
  lastMessage,
  promptSection,
  sequenceOf,
  until,
  type World,
} from "../support/scenario.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("invariants of the prefix");

/** The prefix part of the cached sequence, without parameters and marks: the same whatever the model's name. */
function prefixes(world: World, session: string): Buffer[] {
  return world.bodies(session).map((body) => promptSection(sequenceOf(body)));
}

const sum = (name: string) =>
  defineTool({
    name,
    description: `Adds, as ${name}.`,
    input: z.object({ a: z.number(), b: z.number() }),
    run: ({ a, b }) => String(a + b),
  });

test(
  "I1: one prefix over turns, workers, mounts, restarts, models and redeploys of role prompts, tools and PERSONA.md",
  inWorld(async (world) => {
    const memory = memoryRepository({ "PERSONA.md": "You are Ada.\n" });
    await world.worker([world.bot({ memory, tools: [sum("add")], rolePrompts: ["Role of spring."] })]);
    await world.say("s", "one");
    await world.say("s", "two");
    memory.edit("PERSONA.md", "You are Ada of summer.\n");
    await world.restart([
      world.bot({
        memory,
        tools: [sum("plus"), sum("add")],
        rolePrompts: ["Role of summer."],
        model: world.model(undefined, { name: "newer-model", maxTokens: 9 }),
      }),
    ]);
    await world.say("s", "three");
    await world.restart([world.bot({ memory: memoryRepository({ "PERSONA.md": "Another mount.\n" }), rolePrompts: [] })]);
    await world.say("s", "four");
    await world.say("new", "hello");

    const old = prefixes(world, "s");
    assert.is(old.length, 4);
    assert.is(firstChange(old), null);
    assert.equal(new Set(world.entries("s").map(({ prefixSha256 }) => prefixSha256)).size, 1);
    assert.match(world.bodies("s")[2] as string, /"model":"newer-model"/, "the model did change");
    assert.is(firstChange([old[0] as Buffer, ...prefixes(world, "new")]), 1, "the control: a new session is made of the new parts");
  }),
);

test(
  "I1: only a re-own changes the prefix, and what was said before it stays as it was sent",
  inWorld(async (world) => {
    await world.worker([world.bot(), world.bot({ name: "bob", rolePrompts: ["You are Bob."] })]);
    await world.say("s", "one");
    await (await world.first()).sessions.reown("s", "bob", { by: "op" });
    await world.say("s", "two", { bot: "bob" });
    await world.say("s", "three", { bot: "bob" });
    assert.is(firstChange(prefixes(world, "s")), 1);
    assert.is(firstChange(prefixes(world, "s").slice(1)), null);
    const messages = world.bodies("s").map((body) => sequenceOf(body).slice(promptSection(sequenceOf(body)).toString().length));
    assert.ok((messages[1] as string).startsWith(`${messages[0]},`));
  }),
);

test(
  "I2: request n's cached sequence is the leading slice of request n+1's: tools, notices, notes, users, restarts",
  inWorld(async (world) => {
    const memory = memoryRepository({ "PERSONA.md": "You are Ada.\n" });
    const script: Script = ({ step, call }) =>
      step < 3
        ? {
            text: `thinking ${call}`,
            tools: [
              { name: "add", args: { b: call, a: 1e21, weird: "é\u2028" } },
              { name: "read", args: "not json" },
            ],
          }
        : "done";
    const bot = () => world.bot({ memory, tools: [sum("add")], model: world.model(script) });
    for (let n = 0; n < 4; n += 1) {
      await world.restart([bot()]);
      memory.edit(`${n}.md`, "by a person");
      await (await world.first()).sessions.claim("s", "ada");
      await (await world.first()).inbox.post({ session: "s", text: `note ${n} <headfast:notice>` });
      await world.say("s", `turn ${n}`, { user: { id: String(n), name: `U${n}` } });
    }
    assert.is(world.bodies("s").length, 12);
    assert.is(firstBreak(world.bodies("s")), null);
  }),
);

test(
  "I2: a refused call leaves nothing behind: the next request continues the one recorded last",
  inFakeTime(async (world, clock) => {
    const script: Script = ({ turnId, lastUserText }) =>
      turnId === "t2" ? refuse("no") : turnId === "t3" ? fail("broken") : `re: ${lastUserText}`;
    await world.worker([world.bot({ model: world.model(script), attempts: 2 })]);
    await world.say("s", "one");
    assert.is((await world.say("s", "REFUSED")).outcome, "dead");
    const broken = world.say("s", "BROKEN");
    await until("the first attempt failed", () => world.turns("s")[2]?.attemptsSpent === 1);
    await clock.advance(2_000);
    assert.is((await broken).outcome, "dead");
    await world.say("s", "four");
    const bodies = world.bodies("s");
    const [first, fourth] = [bodies[0] as string, bodies.at(-1) as string];
    assert.is(firstBreak([first, fourth]), null);
    assert.not.match(fourth, /REFUSED|BROKEN/);
    assert.equal(lastMessage(fourth), ["four"]);
  }),
);

/** A dialect that renders this text as another once it was told to: a later release's renderer. */
function laterRenderer(world: World, other: boolean): Model {
  const model = world.model();
  const { renderMessage, renderPrefix } = model.dialect;
  const changed = {
    ...model.dialect,
    renderMessage: (message: Parameters<typeof renderMessage>[0]) => renderMessage(message).replace("one", "ONE"),
    renderPrefix: (parts: Parameters<typeof renderPrefix>[0]) => renderPrefix(parts).replace("briefly", "at length"),
  };
  return other ? { ...model, dialect: changed } : model;
}

test(
  "I2: what was rendered is replayed as text: a later release's renderer changes no old byte",
  inWorld(async (world) => {
    await world.worker([world.bot({ model: laterRenderer(world, false) })]);
    await world.say("s", "one");
    await world.restart([world.bot({ model: laterRenderer(world, true) })]);
    await world.say("s", "one");
    assert.is(firstBreak(world.bodies("s")), null);
    assert.equal(lastMessage(world.bodies("s")[1] as string), ["ONE"], "the control: the other renderer was in use");
  }),
);

test("I8: the prefix is a function of tools, role prompts and persona alone", async () => {
  const sections: Buffer[] = [];
  for (const [start, session, count] of [
    [0, "tg:1", 1],
    [Date.UTC(2031, 11, 31, 23, 59, 59), "日本/2", 60],
  ] as const) {
    await inFakeTime(async (world) => {
      const memory = memoryRepository({ "PERSONA.md": `---\npin: ${count}\ntags: [x${count}]\n---\nYou are Ada.\n` });
      for (let n = 0; n < count; n += 1) memory.edit(`n/${n}.md`, `${n}`);
      await world.worker([world.bot({ memory })]);
      for (let n = 0; n < count; n += 20)
        await world.say(session, "x", { user: { id: session, name: `name ${count}` }, deliverTo: session });
      sections.push(...prefixes(world, session));
    }, start)();
  }
  assert.is(sections.length, 4);
  assert.is(firstChange(sections), null, "another time, id, speaker, listing and front matter: the same bytes");
});

test(
  "I12 and I2: a call that was put off is sent again as the same bytes",
  inFakeTime(async (world, clock) => {
    const script: Script = ({ call }) => (call === 2 ? later(1_000) : "ok");
    await world.worker([world.bot({ model: world.model(script) })]);
    await world.say("s", "one");
    const second = world.say("s", "two");
    await until("put off", () => world.requests.length === 2);
    await clock.advance(1_500);
    await second;
    const [, refused, again] = world.bodies("s") as [string, string, string];
    assert.is(again, refused);
  }),
);

test.run();
