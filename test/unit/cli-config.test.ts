import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Call } from "../../src/cli/command.ts";
import { botNamed, configuredBots, requiredBots } from "../../src/cli/config-file.ts";
import { placeOf, requiredPlace } from "../../src/cli/connect.ts";
import { Options } from "../../src/cli/options.ts";
import { temporaryFolder } from "../support/git.ts";
import { refusal } from "../support/refusal.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("cli config");
const folder = temporaryFolder("cli-config");
test.after(() => folder.remove());

const index = new URL("../../src/index.ts", import.meta.url).href;
const imports = `import { defineBot, HeadfastError, scriptedModel } from ${JSON.stringify(index)};\n`;

function call(options: Record<string, string> = {}, env: Record<string, string> = {}): Pick<Call, "options" | "io"> {
  return { options: new Options(options), io: { env, cwd: folder.path } as unknown as Call["io"] };
}

function file(name: string, text: string): string {
  writeFileSync(join(folder.path, name), text);
  return name;
}

test("bots come as an array or from an async function", async () => {
  const bot = `defineBot({ name: "ada", model: scriptedModel() })`;
  const array = file("array.mjs", `${imports}export const bots = [${bot}];`);
  const made = file("made.mjs", `${imports}export async function bots() { return [${bot}]; }`);
  for (const config of [array, made])
    assert.equal(
      (await requiredBots(call({ config }))).map(({ name }) => name),
      ["ada"],
    );
  const bots = await requiredBots(call({ config: array }));
  assert.is(botNamed(bots, "ada"), bots[0]);
  assert.throws(
    () => botNamed(bots, "bob"),
    (error: Error & { code: string }) => error.code === "bot_not_found" && error.message.includes('"ada"'),
  );
});

test("what is no config says so, by file and reason", async () => {
  const cases: [string, RegExp][] = [
    ["export const bot = [];", /does not export bots/],
    ["export const bots = {};", /bots is no array/],
    ["export const bots = [];", /bots is empty/],
    ['export const bots = [{ name: "ada" }];', /bots\[0\] is not what defineBot gives/],
    ["export const bots = async () => { throw new Error('no key'); };", /no key/],
    ["import 'not-there-at-all';", /not-there-at-all/],
    ["export const bots = [", /Unexpected|expected/i],
  ];
  for (const [n, [text, reason]] of cases.entries()) {
    const name = file(`bad-${n}.mjs`, text);
    const error = await refusal(requiredBots(call({ config: name })));
    assert.is(error.code, "configuration", text);
    assert.match(error.message, name);
    assert.match(error.message, reason);
  }
});

test("an error of defineBot keeps its own code", async () => {
  const config = file("odd.mjs", `${imports}export const bots = [defineBot({ name: "", model: scriptedModel() })];`);
  assert.is((await refusal(requiredBots(call({ config })))).code, "invalid_id");
});

test("a named file must be there; the default one need not, unless it is needed", async () => {
  assert.match((await refusal(configuredBots(call({ config: "none.mjs" })))).message, "there is no such file");
  assert.is(await configuredBots(call()), undefined);
  assert.match((await refusal(requiredBots(call()))).message, "headfast.config.mjs");
});

test("services come from options before the environment, both or none", () => {
  const env = { HEADFAST_REDIS_URL: "redis://env", HEADFAST_MONGO_URL: "mongodb://env", HEADFAST_NAMESPACE: "env" };
  assert.equal(placeOf(call({}, env)), { redis: "redis://env", mongo: "mongodb://env", namespace: "env" });
  assert.equal(placeOf(call({ redis: "redis://option", namespace: "o" }, env)), {
    redis: "redis://option",
    mongo: "mongodb://env",
    namespace: "o",
  });
  assert.is(placeOf(call()), undefined);
  assert.throws(() => requiredPlace(call()), /--redis and --mongo/);
  assert.throws(() => placeOf(call({ redis: "redis://x" })), /--mongo \(or HEADFAST_MONGO_URL\) is missing/);
  assert.throws(() => placeOf(call({ mongo: "mongodb://x" })), /--redis \(or HEADFAST_REDIS_URL\) is missing/);
});

test("what cannot be the address of a service is refused by the option or variable that says it", () => {
  const good = { redis: "redis://h", mongo: "mongodb://h" };
  const wrong: [Record<string, string>, Record<string, string>, RegExp][] = [
    [{ ...good, redis: "nonsense" }, {}, /^--redis must be a URL/],
    [{ ...good, redis: "http://h" }, {}, /^--redis must be a URL/],
    [{ ...good, redis: "redis://h:99999" }, {}, /^--redis must be a URL/],
    [{ ...good, mongo: "mongodb:/h" }, {}, /^--mongo must be a URL/],
    [{ redis: good.redis }, { HEADFAST_MONGO_URL: "h:27017" }, /^HEADFAST_MONGO_URL must be a URL/],
    [{ mongo: good.mongo }, { HEADFAST_REDIS_URL: "u:s3cret@h" }, /^HEADFAST_REDIS_URL must be a URL/],
    [{ ...good, namespace: "No Good" }, {}, /^--namespace "No Good" must be 1 to 38/],
    [good, { HEADFAST_NAMESPACE: "x".repeat(39) }, /^HEADFAST_NAMESPACE /],
  ];
  for (const [options, env, message] of wrong)
    assert.throws(
      () => placeOf(call(options, env)),
      (error: Error & { code: string }) =>
        error.code === "invalid_input" && message.test(error.message) && !error.message.includes("s3cret"),
    );
});

test.run();
