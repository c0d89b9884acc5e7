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
  assert.match(await refused(() => Headfast.start({ bots: [{ name: "ada", model }] } as never)), /bots.0: is not what defineBot gives/);
  const redis = await refused(() => Headfast.connect({ redis: "http://u:secret@x", mongo: "mongodb://127.0.0.1:1" }));
  assert.match(redis, /redis must be a URL that begins with redis:\/\//);
  assert.not.match(redis, /secret/);
  assert.match(await refused(() => Headfast.connect({ redis: "redis://127.0.0.1:1", mongo: "foo" })), /mongo must be a URL/);
  assert.match(await refused(() => Headfast.connect({})), /needs the URLs of redis and mongo/);
  assert.match(await refused(() => Headfast.start({ bots: [], redis: "redis://127.0.0.1:1" })), /both redis and mongo/);
});

test("settings of a program without types: each by its name, before anything is opened", async () => {
  const wrong: [unknown, RegExp][] = [
    [undefined, /Headfast\.start: give an object/],
    [null, /give an object/],
    [{}, /bots: must be a list of what defineBot gives/],
    [{ bots: [null] }, /bots\.0: is not what defineBot gives/],
    [{ bots: [], redisUrl: "redis://127.0.0.1:1" }, /redisUrl/],
    [{ bots: [], concurrency: 0 }, /concurrency/],
    [{ bots: [], drainMs: Number.NaN }, /drainMs/],
    [{ bots: [], observeEveryMs: -1 }, /observeEveryMs/],
    [{ bots: [], shards: 1.5 }, /shards/],
    [{ bots: [], namespace: "Not A Name" }, /namespace "Not A Name" must be 1 to 38/],
    [{ bots: [], redis: 6379, mongo: "mongodb://127.0.0.1:1" }, /redis/],
  ];
  for (const [given, message] of wrong) assert.match(await refused(() => Headfast.start(given as never)), message, JSON.stringify(given));
  assert.match(await refused(() => Headfast.connect(undefined as never)), /Headfast\.connect: give an object/);
  for (const redis of ["redis://", "redis://h:99999", "redis://h/nine", "redis://h a"])
    assert.match(await refused(() => Headfast.connect({ redis, mongo: "mongodb://127.0.0.1:1" })), /redis must be a URL/, redis);
});

test.run();
