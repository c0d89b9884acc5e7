/** Bad input, whoever made it: each gets a typed error that says what and where, nothing is half done, the session goes on. */
import { z } from "zod";
import type { TurnRequest } from "../../src/domain/acceptance.ts";
import { limits } from "../../src/domain/limits.ts";
import type { Script } from "../../src/models/script.ts";
import { memoryRepository } from "../../src/testing/memory-repository.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { refusal } from "../support/refusal.ts";
import { firstBreak, firstChange, inFakeTime, inWorld, lastMessage, promptSection, until } from "../support/scenario.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("bad input");

const good = { bot: "ada", session: "s", turnId: "1", input: "hello" };

const ids = [
  "tg:42",
  "-1001234567",
  "123456",
  "0",
  "a:b:c",
  "a:b:c:d",
  "a#1",
  "a",
  "a#1#0",
  "../x",
  "__proto__",
  "constructor",
  " ",
  "\n",
  "日本",
  "👍\n",
  "é",
  "e\u0301",
  "$ne",
  "a.b",
  "x".repeat(limits.idBytesMax),
];

test(
  "any non-empty id up to its limit works and stays distinct, as session and as turn",
  inWorld(async (world) => {
    await world.worker([world.bot()]);
    await Promise.all(ids.map((id) => world.say(id, `I am ${id}`, { turnId: id })));
    await Promise.all(ids.map((id) => world.say("one session", `I am ${id}`, { turnId: id })));
    for (const id of ids) {
      assert.equal(
        world.entries(id).map(({ turn, outcome }) => [turn?.turnId, outcome]),
        [[id, "done"]],
        JSON.stringify(id.slice(0, 20)),
      );
      assert.equal(lastMessage(world.bodies(id)[0] as string), [`I am ${id}`]);
    }
    assert.is(new Set(world.entries("one session").map(({ turn }) => turn?.turnId)).size, ids.length);
  }),
);

function nested(depth: number): unknown {
  let value: unknown = "x";
  for (let n = 0; n < depth; n += 1) value = [value];
  return value;
}

const refusals: readonly (readonly [string, unknown, string, string?])[] = [
  ["nothing", undefined, "invalid_input"],
  ["null", null, "invalid_input"],
  ["an array", [good], "invalid_input"],
  ["text", "hello", "invalid_input"],
  ["an empty session", { ...good, session: "" }, "invalid_id", "session"],
  ["a session too long by a byte", { ...good, session: "x".repeat(limits.idBytesMax + 1) }, "invalid_id", "session"],
  ["an operator as session", { ...good, session: { $ne: null } }, "invalid_id", "session"],
  ["a number as turnId", { ...good, turnId: 42 }, "invalid_id", "turnId"],
  ["an operator as turnId", { ...good, turnId: { $gt: "" } }, "invalid_id", "turnId"],
  ["a missing bot", { ...good, bot: undefined }, "invalid_id", "bot"],
  ["a String object as bot", { ...good, bot: new String("ada") }, "invalid_id", "bot"],
  ["an empty input", { ...good, input: "" }, "invalid_input", "input"],
  ["an input of blocks", { ...good, input: [{ type: "text", text: "x" }] }, "invalid_input", "input"],
  ["an operator as input", { ...good, input: { $where: "1" } }, "invalid_input", "input"],
  ["an input nested 100,000 deep", { ...good, input: nested(100_000) }, "invalid_input", "input"],
  ["an input too large by a byte", { ...good, input: `${"é".repeat(limits.inputBytesMax / 2)}x` }, "input_too_large", "input"],
  ["a 17 MB input", { ...good, input: "x".repeat(17 * 1024 * 1024) }, "input_too_large", "input"],
  ["a user that is text", { ...good, user: "u" }, "invalid_input", "user"],
  ["a user without id", { ...good, user: { name: "Ada" } }, "invalid_id", "user.id"],
  ["an operator as user id", { ...good, user: { id: { $exists: true } } }, "invalid_id", "user.id"],
  ["a user's name too long", { ...good, user: { id: "u", name: "x".repeat(limits.userNameBytesMax + 1) } }, "input_too_large", "user.name"],
  ["an array as deliverTo", { ...good, deliverTo: ["a"] }, "invalid_id", "deliverTo"],
  ["an unknown field", { ...good, $set: { bot: "eve" } }, "invalid_input", "$set"],
  ["an own __proto__", JSON.parse('{"__proto__":{"input":"x"},"bot":"ada","session":"s","turnId":"1"}'), "invalid_input", "input"],
];

for (const [name, request, code, field] of refusals) {
  test(
    `refused when it is sent: ${name}`,
    inWorld(async (world) => {
      const { turns } = await world.first();
      const error = await refusal(turns.send(request as TurnRequest));
      assert.equal([error.code, error.data.field], [code, field]);
      if (code === "input_too_large") assert.match(error.message, /the limit is \d+/);
      assert.equal(
        world.store.contents(),
        { ownership: [], turns: [], entries: [], notes: [], observations: [], intents: [] },
        "nothing half done",
      );
      assert.is(world.queues.mailboxes.size, 0);
      assert.is((Object.prototype as { input?: unknown }).input, undefined);
    }),
  );
}

test(
  "C7: a persona over 64 KiB is named and waits; 50,000 changes are one notice; the ownership document stays small",
  inFakeTime(async (world, clock) => {
    const memory = memoryRepository({ "PERSONA.md": "x".repeat(limits.personaBytesMax + 1) });
    await world.worker([world.bot({ memory })]);
    const said = world.say("s", "one");
    await clock.advance(1_000);
    assert.is(world.owner("s")?.personaSnapshot, undefined);
    const ended = await said;
    assert.equal([ended.outcome, ended.cause?.code], ["dead", "input_too_large"]);
    memory.edit("PERSONA.md", "x".repeat(limits.personaBytesMax));
    assert.is((await world.say("s", "two")).outcome, "done");
    for (let n = 0; n < 50_000; n += 1) memory.edit(`n${n}.md`, "x");
    await world.say("s", "three");
    const [notice] = lastMessage(world.bodies("s").at(-1) as string) as [string];
    assert.match(notice, /and 49970 more paths/);
    assert.ok(Buffer.byteLength(JSON.stringify(world.owner("s"))) <= limits.personaBytesMax + 64 * 1024);
  }),
);

test(
  "a turnId used again with another input is a conflict that names it, and the first one's outcome stands",
  inWorld(async (world) => {
    await world.worker([world.bot()]);
    await world.say("s", "hello", { turnId: "1" });
    const { turns } = await world.first();
    const error = await refusal(turns.send({ ...good, input: "something else" }));
    assert.equal([error.code, error.data], ["turn_id_reused", { session: "s", turnId: "1" }]);
    assert.is((await turns.send({ ...good, user: { id: "u" } })).duplicate, true, "only the input makes it another");
    assert.is(world.turns("s").length, 1);
  }),
);

test(
  "an unknown session or turn is told as such by everything that takes one, and what is no id is refused by name",
  inWorld(async (world) => {
    const { turns, sessions, inbox, deadLetters } = await world.first();
    const by = { by: "op" };
    const bySession: Record<string, (session: string) => Promise<unknown>> = {
      get: (s) => sessions.get(s),
      reown: (s) => sessions.reown(s, "bob", by),
      transcript: (s) => sessions.transcript(s),
      verify: (s) => sessions.verify(s),
      prefix: (s) => sessions.prefix(s),
      post: (s) => inbox.post({ session: s, text: "x" }),
      list: (s) => inbox.list(s),
      turn: (s) => turns.get({ session: s, turnId: "1" }),
      cancel: (s) => turns.cancel({ session: s, turnId: "1" }),
      letter: (s) => deadLetters.get(s, "1"),
      replay: (s) => deadLetters.replay(s, "1"),
      discard: (s) => deadLetters.discard(s, "1"),
      parent: (s) => sessions.claim("child", "ada", { parent: s }),
    };
    for (const [name, call] of Object.entries(bySession)) {
      assert.is((await refusal(call("nowhere"))).code, "session_not_found", name);
      assert.is((await refusal(call({ $ne: null } as unknown as string))).code, "invalid_id", name);
    }
    await sessions.claim("s", "ada");
    const byTurn: Record<string, (turnId: string) => Promise<unknown>> = {
      get: (t) => turns.get({ session: "s", turnId: t }),
      wait: (t) => turns.wait({ session: "s", turnId: t }),
      events: (t) => turns.events({ session: "s", turnId: t }).next(),
      cancel: (t) => turns.cancel({ session: "s", turnId: t }),
      letter: (t) => deadLetters.get("s", t),
      replay: (t) => deadLetters.replay("s", t),
      discard: (t) => deadLetters.discard("s", t),
    };
    for (const [name, call] of Object.entries(byTurn)) {
      assert.is((await refusal(call("never"))).code, "turn_not_found", name);
      assert.is((await refusal(call({ $gt: "" } as unknown as string))).code, "invalid_id", name);
    }
    for (const generation of [{ $gte: 0 }, -1, 0.5, "0"]) {
      const error = await refusal(turns.get({ session: "s", turnId: "never", generation: generation as number }));
      assert.equal([error.code, error.data.field], ["invalid_input", "generation"]);
    }
  }),
);

test(
  "a bot that this worker does not serve: put back, counted, no attempt spent, until a worker comes that serves it",
  inFakeTime(async (world, clock) => {
    const stranger = await world.worker([world.bot({ name: "other" })]);
    const { turns } = await world.first();
    const sent = await turns.send(good);
    await until("it was put back", () => stranger.counts.get("unserved") === 1);
    await clock.advance(3 * limits.unservedMs);
    assert.ok((stranger.counts.get("unserved") ?? 0) >= 3);
    assert.equal([world.turns("s")[0]?.attemptsSpent, world.entries("s")], [0, []]);
    assert.is((await world.say("o", "hello", { bot: "other" })).outcome, "done", "its own bot's sessions go on");
    await world.worker([world.bot()]);
    await world.stop(stranger); // in memory the first worker always takes first: it would put the session back for ever
    const waiting = turns.wait(sent);
    await clock.advance(2 * limits.unservedMs);
    assert.is((await waiting).outcome, "done");
  }),
);

test(
  "a tool that went away answers with an error result; the frozen tools stay, and the difference is said once",
  inWorld(async (world) => {
    const gone = defineTool({ name: "weather", description: "Tells the weather.", input: z.object({}), run: () => "sunny" });
    const script: Script = ({ step }) =>
      step === 1
        ? {
            tools: [
              { name: "weather", args: {} },
              { name: "never_there", args: {} },
            ],
          }
        : "ok";
    await world.worker([world.bot({ tools: [gone], model: world.model(script) })]);
    await world.say("s", "one");
    await world.restart([world.bot({ tools: [], model: world.model(script) })]);
    await world.say("s", "two");
    await world.say("s", "three");
    const bodies = world.bodies("s");
    assert.equal(lastMessage(bodies[1] as string), ["sunny", 'there is no tool "never_there"']);
    assert.equal(lastMessage(bodies[3] as string), ['the tool "weather" is not available any more', 'there is no tool "never_there"']);
    assert.is(firstChange(bodies.map(promptSection)), null);
    assert.is(firstBreak(bodies), null);
    assert.is(world.logged("frozen_tools_differ").length, 1);
  }),
);

test.run();
