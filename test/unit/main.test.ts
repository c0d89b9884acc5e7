/** The composition root refuses what is wrong early, whole, and by its name. */
import { HeadfastError } from "../../src/domain/errors.ts";
import { defineBot, Headfast } from "../../src/main.ts";
import { scriptedModel } from "../../src/models/scripted.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("configuration");
const model = scriptedModel();

async function refused(work: () => unknown): Promise<string> {
  try {
    await work();
  } catch (error) {
    assert.ok(error instanceof HeadfastError && error.code === "configuration", String(error));
    return error.message;
  }
  throw new Error("it was taken");
}

const bots: [string, Record<string, unknown>, RegExp][] = [
  ["a field that does not exist", { rolePrompt: "x" }, /no field "rolePrompt"; there are .*rolePrompts/],
  ["a memory that is no path", { memory: 5 }, /memory must be the path/],
  ["an empty memory", { memory: "" }, /memory must be the path/],
  ["role prompts that are no list", { rolePrompts: "x" }, /rolePrompts must be a list/],
  ["a tool without run", { tools: [{ name: "x", description: "x", inputSchema: {} }] }, /tools must be a list of what defineTool gives/],
  [
    "a model without maxTokens",
    { model: { ...model, maxTokens: undefined, call: model.call } },
    /model must have name, dialect, maxTokens/,
  ],
  ["no model", { model: undefined }, /model must be an object with a call/],
  ["attempts below one", { attempts: 0 }, /attempts must be a whole number/],
];

for (const [what, wrong, message] of bots) {
  test(`a bot with ${what}`, async () => {
    assert.match(await refused(() => defineBot({ name: "ada", model, ...wrong } as never)), message);
  });
}

test("bots that defineBot did not make, URLs of the wrong kind, a host without URLs, and one URL of two", async () => {
  assert.match(
    await refused(() => Headfast.start({ bots: [{ name: "ada", model }] } as never)),
    /bots must be a list of what defineBot gives/,
  );
  const redis = await refused(() => Headfast.connect({ redis: "http://u:secret@x", mongo: "mongodb://127.0.0.1:1" }));
  assert.match(redis, /redis must be a URL that begins with redis:\/\//);
  assert.not.match(redis, /secret/);
  assert.match(await refused(() => Headfast.connect({ redis: "redis://127.0.0.1:1", mongo: "foo" })), /mongo must be a URL/);
  assert.match(await refused(() => Headfast.connect({})), /needs the URLs of redis and mongo/);
  assert.match(await refused(() => Headfast.start({ bots: [], redis: "redis://127.0.0.1:1" })), /both redis and mongo/);
});

test.run();
