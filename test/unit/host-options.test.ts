/** Each option of a host's calls that is wrong is refused by name, before anything is read or written (I11). */
import { defineBot, Headfast } from "../../src/main.ts";
import { scriptedModel } from "../../src/models/scripted.ts";
import { refusal } from "../support/refusal.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("host options");
let hf: Headfast;
test.before(async () => {
  hf = await Headfast.start({ bots: [defineBot({ name: "ada", model: scriptedModel() })] });
  await hf.turns.send({ bot: "ada", session: "s", turnId: "1", input: "hello" });
});
test.after(() => hf.close());

const name = { session: "s", turnId: "1" };
const actor = { by: "op" };
const wrong: [string, (value: never) => Promise<unknown>, unknown[]][] = [
  ["sessions.list: limit", (limit) => hf.sessions.list({ limit }), [-1, 0, 1.5, Number.POSITIVE_INFINITY, Number.NaN, "x", null, 1001]],
  ["sessions.list: ", (more) => hf.sessions.list(more), [null, 5, { bots: "ada" }]],
  ["sessions.transcript: after", (after) => hf.sessions.transcript("s", { after }), ["x", -1, 0.5, Number.NaN]],
  ["sessions.transcript: limit", (limit) => hf.sessions.transcript("s", { limit }), [0, Number.POSITIVE_INFINITY]],
  ["sessions.reown: ", (who) => hf.sessions.reown("s", "ada", who), [undefined, null, {}, { by: "" }, { by: "op", why: 5 }]],
  ["sessions.claim: ", (more) => hf.sessions.claim("t", "ada", more), [null, { role: 5 }, { provenance: { $gt: "" } }, { roles: "x" }]],
  ["turns.wait: timeoutMs", (timeoutMs) => hf.turns.wait(name, { timeoutMs }), [Number.NaN, -1, Number.POSITIVE_INFINITY, "5", 2 ** 31]],
  ["turns.wait: signal", (signal) => hf.turns.wait(name, { signal }), [{}, "stop"]],
  ["turns.wait: ", (options) => hf.turns.wait(name, options), [null, { timeout: 5 }]],
  ["deadLetters.list: limit", (limit) => hf.deadLetters.list({ limit }), [0, Number.POSITIVE_INFINITY]],
  ["deadLetters.replay: position", (position) => hf.deadLetters.replay("s", "1", { position }), ["top", 1]],
  ["deadLetters.discard: ", (options) => hf.deadLetters.discard("s", "1", options), [{ by: 5 }, null]],
];

for (const [where, call, values] of wrong) {
  test(`${where} of the wrong kind`, async () => {
    for (const value of values) {
      const error = await refusal(call(value as never));
      assert.is(error.code, "invalid_input", String(value));
      assert.ok(error.message.startsWith(where), `${error.message} for ${String(value)}`);
    }
  });
}

test("an option that is an id has the error of ids", async () => {
  const operators = { $ne: "" } as never;
  const calls = [
    () => hf.sessions.list({ bot: operators }),
    () => hf.sessions.claim("t", "ada", { parent: operators }),
    () => hf.deadLetters.list({ bot: operators }),
    () => hf.deadLetters.list({ session: operators }),
  ];
  for (const call of calls) assert.is((await refusal(call())).code, "invalid_id");
});

test("a turn is named by an object, and its parts by name", async () => {
  const names: [unknown, string, RegExp][] = [
    [undefined, "invalid_input", /named by an object/],
    [null, "invalid_input", /named by an object/],
    [{ session: "s" }, "invalid_id", /^turnId /],
    [{ turnId: "1" }, "invalid_id", /^session /],
    [{ ...name, generation: -1 }, "invalid_input", /^generation /],
    [{ ...name, generation: "0" }, "invalid_input", /^generation /],
  ];
  for (const [given, code, message] of names) {
    const calls = [() => hf.turns.get(given as never), () => hf.turns.wait(given as never), () => hf.turns.cancel(given as never)];
    for (const call of [...calls, () => hf.turns.events(given as never).next()]) {
      const error = await refusal(call());
      assert.is(error.code, code);
      assert.match(error.message, message);
    }
  }
});

test("a trace context that is none is refused, one of a later version is kept", async () => {
  const ids = "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331";
  const send = (turnId: string, traceparent: unknown) =>
    hf.turns.send({ bot: "ada", session: "s", turnId, input: "hello", traceparent: traceparent as string });
  for (const odd of [
    "",
    "x",
    5,
    null,
    `00-${ids}`,
    `ff-${ids}-01`,
    `00-${ids.toUpperCase()}-01`,
    `00-${"0".repeat(32)}-b7ad6b7169203331-01`,
    `00-${ids}-01-more`,
    `00-${ids}-01\n`,
  ]) {
    const error = await refusal(send("odd", odd));
    assert.is(error.code, "invalid_input");
    assert.match(error.message, /^traceparent /);
  }
  for (const [n, good] of [`00-${ids}-01`, `01-${ids}-01-more`].entries()) {
    await send(`good ${n}`, good);
    assert.is((await hf.turns.get({ session: "s", turnId: `good ${n}` })).turn.traceparent, good);
  }
});

test("sent again after its end, a turn says so and nothing is left to be taken", async () => {
  const request = { bot: "ada", session: "again", turnId: "1", input: "hello" };
  await hf.turns.wait(await hf.turns.send(request), { timeoutMs: 10_000 });
  const again = await hf.turns.send(request);
  assert.equal([again.duplicate, again.state, again.outcome, again.inRedis], [true, "ended", "done", true]);
});

test("what reown was told is kept, with texts made well-formed", async () => {
  await hf.sessions.claim("mine", "ada");
  await hf.sessions.reown("mine", "bob", { ...actor, why: "a\ud83d" });
  const { entries } = await hf.sessions.transcript("mine");
  assert.equal([entries[0]?.by, entries[0]?.why], ["op", "a\ufffd"]);
});

test.run();
