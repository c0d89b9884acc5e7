/** The billing simulator: the published rules by hand-made numbers, and the properties that any prompt must have. */
import fc from "fast-check";
import { addUsage, cacheReadShare, noUsage, promptTokens } from "../../src/domain/cache-accounting.ts";
import type { HeadfastError } from "../../src/domain/errors.ts";
import type { Message } from "../../src/domain/messages.ts";
import { anthropicDialect as dialect } from "../../src/models/anthropic-dialect.ts";
import { type Bill, billingSimulator, withBilling } from "../../src/models/billing.ts";
import { anthropicPrice, prices, ratesFor } from "../../src/models/prices.ts";
import { stream } from "../../src/models/script.ts";
import { scriptedModel } from "../../src/models/scripted.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("billing");
const seed = 20261201;

interface Clock {
  monotonic(): number;
  pass(seconds: number): void;
}
function clockAt(start = 0): Clock {
  let ms = start;
  return {
    monotonic: () => ms,
    pass(seconds) {
      ms += seconds * 1000;
    },
  };
}

/** Every block costs the number that stands in its text, so that each bill can be reckoned by hand. */
const byNumber = (text: string): number => Number(/#(\d+)/.exec(text)?.[1] ?? 0);
const sim = (clock: Clock, model = "claude-opus-5") => billingSimulator({ model, system: clock, countTokens: byNumber });

type Mark = "5m" | "1h" | undefined;
interface Block {
  type: "text" | "tool_use" | "tool_result";
  tokens: number;
  mark?: Mark;
  salt?: string;
}
const control = (mark: Mark) =>
  mark === undefined ? {} : { cache_control: { type: "ephemeral", ...(mark === "1h" ? { ttl: "1h" } : {}) } };
const block = ({ type, tokens, mark, salt = "" }: Block) => ({
  type,
  ...(type === "tool_result" ? { content: `#${tokens}${salt}` } : { text: `#${tokens}${salt}` }),
  ...control(mark),
});
const bodyWith = (system: Block[], user: Block[], more: Record<string, unknown> = {}): string =>
  JSON.stringify({ model: "m", max_tokens: 1, ...more, system: system.map(block), messages: [{ role: "user", content: user.map(block) }] });
const text = (tokens: number, mark?: Mark, salt?: string): Block => ({
  type: "text",
  tokens,
  mark,
  ...(salt === undefined ? {} : { salt }),
});
const split = ({ usage, write1h, write5m }: Bill): number[] => [usage.cacheRead ?? -1, write1h, write5m, usage.fresh ?? -1];
const failure = (call: Promise<unknown>): Promise<HeadfastError> =>
  call.then(
    () => {
      throw new Error("the call did not fail");
    },
    (error: HeadfastError) => error,
  );
const near = (actual: number, expected: number): void => assert.ok(Math.abs(actual - expected) < 1e-12, `${actual} is not ${expected}`);

test("first call writes, second reads, and each costs what the price list says", async () => {
  const billing = sim(clockAt());
  const body = bodyWith([text(2000, "1h")], [text(1000, "5m"), text(300)]);
  const first = await billing.call(body, 10);
  assert.equal(split(first), [0, 2000, 1000, 300]);
  near(first.costUsd, (300 * 5 + 1000 * 6.25 + 2000 * 10 + 10 * 25) / 1e6);
  near(first.uncachedCostUsd, (3300 * 5 + 10 * 25) / 1e6);
  const second = await billing.call(body, 10);
  assert.equal(split(second), [3000, 0, 0, 300]);
  near(second.costUsd, (300 * 5 + 3000 * 0.5 + 10 * 25) / 1e6);
  assert.equal(billing.totals.usage, { fresh: 600, cacheRead: 3000, cacheWrite: 3000, output: 20 });
  near(billing.totals.costUsd, first.costUsd + second.costUsd);
  assert.is(billing.totals.calls, 2);
});

test("five minutes and one hour after the last use an entry is gone; a hit keeps it for free", async () => {
  const clock = clockAt();
  const billing = sim(clock);
  const body = bodyWith([text(2000, "1h")], [text(1000, "5m")]);
  await billing.call(body);
  for (let i = 0; i < 3; i += 1) {
    clock.pass(300);
    assert.equal(split(await billing.call(body)), [3000, 0, 0, 0]);
  }
  clock.pass(300.001);
  assert.equal(split(await billing.call(body)), [2000, 0, 1000, 0]);
  clock.pass(3600);
  assert.equal(split(await billing.call(body)), [2000, 0, 1000, 0]);
  clock.pass(3600.001);
  assert.equal(split(await billing.call(body)), [0, 2000, 1000, 0]);
});

test("a prefix shorter than the model's minimum is not cached, silently", async () => {
  for (const [model, tokens, cached] of [
    ["claude-opus-5", 511, 0],
    ["claude-opus-5", 512, 512],
    ["claude-haiku-4-5", 4095, 0],
    ["claude-haiku-4-5", 4096, 4096],
  ] as const) {
    const billing = sim(clockAt(), model);
    const body = bodyWith([text(tokens, "1h")], [text(1)]);
    await billing.call(body);
    assert.is((await billing.call(body)).usage.cacheRead, cached);
  }
});

test("the lookback is 20 positions, where a run of tool calls or of results is one", async () => {
  const grown = async (added: Block[]): Promise<number> => {
    const billing = sim(clockAt());
    await billing.call(bodyWith([text(1000)], [text(1000, "5m")]));
    return (await billing.call(bodyWith([text(1000)], [text(1000), ...added, text(1, "5m")]))).usage.cacheRead ?? -1;
  };
  const many = (type: Block["type"], count: number): Block[] =>
    Array.from({ length: count }, (_, i) => ({ type, tokens: 1, salt: `.${i}` }));
  assert.is(await grown(many("text", 18)), 2000);
  assert.is(await grown(many("text", 19)), 0);
  assert.is(await grown(many("tool_result", 200)), 2000);
  assert.is(await grown([...many("tool_use", 50), ...many("tool_result", 50), ...many("text", 16)]), 2000);
  assert.is(await grown([...many("tool_use", 50), ...many("tool_result", 50), ...many("text", 17)]), 0);
});

test("an entry can be read once its writer's answer has begun, not before", async () => {
  const clock = clockAt();
  const billing = sim(clock);
  const body = bodyWith([text(2000, "1h")], [text(5)]);
  const writer = await billing.begin(body);
  assert.is((await billing.begin(body)).finish(0).usage.cacheRead, 0);
  writer.firstByte();
  assert.is((await billing.begin(body)).finish(0).usage.cacheRead, 2000);
});

test("a parameter of the messages leaves tools and system cached; another model shares nothing", async () => {
  const system = [text(2000, "1h")];
  const user = [text(1000, "5m")];
  const after = async (more: Record<string, unknown>): Promise<number[]> => {
    const billing = sim(clockAt());
    await billing.call(bodyWith(system, user));
    return split(await billing.call(bodyWith(system, user, more)));
  };
  assert.equal(await after({ max_tokens: 9 }), [3000, 0, 0, 0]);
  assert.equal(await after({ tool_choice: { type: "any" } }), [2000, 0, 1000, 0]);
  assert.equal(await after({ speed: "fast" }), [0, 2000, 1000, 0]);
  assert.equal(await after({ model: "other" }), [0, 2000, 1000, 0]);
});

test("more than four marks, an hour after five minutes, and what is no JSON are refused as by a 400", async () => {
  const refused = async (body: string, reason: RegExp): Promise<void> => {
    const error = await failure(sim(clockAt()).call(body));
    assert.equal([error.code, error.kind], ["model_refused", "terminal"]);
    assert.match(error.message, reason);
  };
  await refused(
    bodyWith(
      [text(1, "1h")],
      [1, 2, 3, 4].map((n) => text(n, "5m")),
    ),
    /maximum of 4/,
  );
  await refused(bodyWith([text(1, "5m")], [text(1, "1h")]), /1h must not come after/);
  await refused("{", /not valid JSON/);
});

// ── the properties, over the dialect's own bodies ────────────────────────────────────────────────────

interface Turn {
  said: number;
  steps: number;
  calls: number;
  gapSeconds: number;
}
const turnArbitrary: fc.Arbitrary<Turn> = fc.record({
  said: fc.integer({ min: 1, max: 3000 }),
  steps: fc.nat(11),
  calls: fc.oneof({ weight: 5, arbitrary: fc.constantFrom(1, 2) }, fc.constant(25)),
  gapSeconds: fc.integer({ min: 0, max: 299 }),
});
const conversation = fc.array(turnArbitrary, { minLength: 2, maxLength: 4 });
const prefix = dialect.renderPrefix({
  tools: [{ name: "t", description: "#700", inputSchema: { type: "object" } }],
  rolePrompts: ["#900"],
  persona: "#400",
});

/** Every request of a conversation, in order, as bodies. */
function requests(turns: readonly Turn[]): { body: string; gapSeconds: number }[] {
  const messages: string[] = [];
  const bodies: { body: string; gapSeconds: number }[] = [];
  const add = (message: Message) => messages.push(dialect.renderMessage(message));
  for (const [n, turn] of turns.entries()) {
    const settled = messages.length;
    const ask = (gapSeconds: number) =>
      bodies.push({ ...dialect.renderBody(prefix, messages, { model: "m", maxTokens: 1, settled }), gapSeconds });
    add({ role: "user", blocks: [{ type: "input", text: `#${turn.said} turn ${n}` }] });
    for (let step = 0; step < turn.steps; step += 1) {
      ask(step === 0 ? turn.gapSeconds : 1);
      const ids = Array.from({ length: turn.calls }, (_, i) => `c${n}-${step}-${i}`);
      add({ role: "assistant", text: `#7 step ${step}`, toolCalls: ids.map((id) => ({ id, name: "t", arguments: "{}" })) });
      add({ role: "tool", results: ids.map((id) => ({ id, text: "#11", isError: false })) });
    }
    ask(turn.steps === 0 ? turn.gapSeconds : 1);
    add({ role: "assistant", text: `#40 answer ${n}`, toolCalls: [] });
  }
  return bodies;
}

const tokensOf = (body: string): number => [...body.matchAll(/#(\d+)/g)].reduce((sum, match) => sum + Number(match[1]), 0);

test("property 1 and 3: while it only grows, what is read never shrinks within the lifetime, and the parts add up to the whole", async () => {
  const property = fc.asyncProperty(conversation, async (turns) => {
    const clock = clockAt();
    const billing = sim(clock);
    let before = 0;
    for (const { body, gapSeconds } of requests(turns)) {
      clock.pass(gapSeconds);
      const bill = await billing.call(body);
      assert.ok((bill.usage.cacheRead ?? -1) >= before, `${bill.usage.cacheRead} after ${before}`);
      assert.is(promptTokens(bill.usage), tokensOf(body));
      assert.ok(split(bill).every((tokens) => tokens >= 0));
      before = bill.usage.cacheRead ?? -1;
    }
    assert.ok(before >= 2000, "the prefix at least was read");
  });
  await fc.assert(property, { seed, numRuns: 30 });
});

test("property 1: every call after the first reads all that the call before it had cached", async () => {
  const property = fc.asyncProperty(conversation, async (turns) => {
    const billing = sim(clockAt());
    let cached = 0;
    for (const { body } of requests(turns)) {
      const { usage } = await billing.call(body);
      assert.is(usage.cacheRead, cached);
      cached = (usage.cacheRead ?? 0) + (usage.cacheWrite ?? 0);
    }
  });
  await fc.assert(property, { seed, numRuns: 30 });
});

test("property 2: a flipped byte at block k leaves at most what stands before k to be read", async () => {
  const property = fc.asyncProperty(
    fc.array(fc.integer({ min: 600, max: 900 }), { minLength: 3, maxLength: 30 }),
    fc.nat(29),
    fc.nat(29),
    async (sizes, at, markAt) => {
      const k = at % sizes.length;
      const marks = new Set([markAt % sizes.length, sizes.length - 1]);
      const blocks = (changed: number) =>
        sizes.map((tokens, i) => text(tokens, marks.has(i) ? "5m" : undefined, i === changed ? "!" : "?"));
      const billing = sim(clockAt());
      await billing.call(bodyWith([], blocks(-1)));
      const { usage } = await billing.call(bodyWith([], blocks(k)));
      assert.ok((usage.cacheRead ?? -1) <= sizes.slice(0, k).reduce((a, b) => a + b, 0));
      assert.is((await billing.call(bodyWith([], blocks(-1)))).usage.fresh, 0);
    },
  );
  await fc.assert(property, { seed, numRuns: 200 });
});

test("property 4: two first calls at once both write", async () => {
  const property = fc.asyncProperty(fc.integer({ min: 600, max: 5000 }), fc.integer({ min: 1, max: 500 }), async (system, user) => {
    const billing = sim(clockAt());
    const body = bodyWith([text(system, "1h")], [text(user, "5m")]);
    const open = [await billing.begin(body), await billing.begin(body)];
    for (const call of open) call.firstByte();
    for (const call of open) assert.equal(split(call.finish(0)), [0, system, user, 0]);
    assert.equal(split(await billing.call(body)), [system + user, 0, 0, 0]);
  });
  await fc.assert(property, { seed, numRuns: 50 });
});

test("property 5: more than 20 positions at once miss without a middle mark and hit with one", async () => {
  const property = fc.asyncProperty(fc.integer({ min: 20, max: 60 }), async (added) => {
    const read = async (middle: Mark): Promise<number | null> => {
      const billing = sim(clockAt());
      await billing.call(bodyWith([text(600)], [text(1000, "5m")]));
      const blocks = [
        text(1000, middle),
        ...Array.from({ length: added - 1 }, (_, i) => text(1, undefined, `.${i}`)),
        text(1, "5m", "end"),
      ];
      return (await billing.call(bodyWith([text(600)], blocks))).usage.cacheRead;
    };
    assert.is(await read(undefined), 0);
    assert.is(await read("5m"), 1600);
  });
  await fc.assert(property, { seed, numRuns: 40 });
});

// ── tokens, prices, the wrapper ──────────────────────────────────────────────────────────────────────

test("tokens are counted by a real encoding, also of text that looks special or never breaks", async () => {
  const billing = billingSimulator({ model: "claude-opus-5", system: clockAt() });
  const said = (content: string) => ({ role: "assistant" as const, text: content, toolCalls: [] });
  assert.is(await billing.outputTokens(said("Hello, world!")), 4);
  assert.is(await billing.outputTokens({ ...said(""), toolCalls: [{ id: "x", name: "read", arguments: "{}" }] }), 2);
  assert.ok((await billing.outputTokens(said("<|endoftext|>"))) > 1);
  const started = performance.now();
  assert.ok((await billing.outputTokens(said("a".repeat(40_000)))) > 4_000);
  assert.ok(performance.now() - started < 5_000);
  const body = dialect.renderBody(
    dialect.renderPrefix({ tools: [], rolePrompts: ["You are a patient bot. ".repeat(300)], persona: null }),
    [dialect.renderMessage({ role: "user", blocks: [{ type: "input", text: "hi" }] })],
    { model: "m", maxTokens: 9, settled: 0 },
  ).body;
  const first = await billing.call(body);
  const second = await billing.call(body);
  assert.ok(
    (first.usage.cacheWrite ?? 0) > 1_500 && second.usage.cacheRead === first.usage.cacheWrite && second.costUsd < first.costUsd / 10,
  );
});

test("every price row has a source and a date, and writes cost 1.25 and 2 times the input", () => {
  for (const row of prices) {
    assert.match(row.checked, /^\d{4}-\d\d-\d\d$/);
    assert.match(row.source, /^https:\/\//);
    assert.ok(row.read < row.input, row.model);
    if (row.flavour === "openai") near(row.write ?? 0, row.input * 1.25);
    if (row.flavour !== "anthropic") continue;
    for (const rates of [row, ...(row.above ? [row.above] : [])]) {
      near(rates.write5m, rates.input * 1.25);
      near(rates.write1h, rates.input * 2);
    }
  }
  assert.is(new Set(prices.map((row) => row.model)).size, prices.length);
  assert.throws(
    () => anthropicPrice("gpt-5"),
    (error: HeadfastError) => error.code === "configuration" && /claude-opus-5-5/.test(error.message),
  );
});

test("a prompt above a model's size limit costs the higher rates as a whole", () => {
  const price = anthropicPrice("claude-haiku-5-5");
  assert.equal([ratesFor(price, 100_000).input, ratesFor(price, 100_001).input, ratesFor(price, 100_001).output], [0.1, 0.5, 2.5]);
});

test("withBilling reports the simulator's usage, lets others read from the first delta on, and bills half an answer", async () => {
  const billing = sim(clockAt());
  const reads: (number | null)[] = [];
  const body = dialect.renderBody(prefix, [dialect.renderMessage({ role: "user", blocks: [{ type: "input", text: "#9" }] })], {
    model: "m",
    maxTokens: 1,
    settled: 0,
  }).body;
  const model = withBilling(scriptedModel([stream(["#1", "2"]), "#5", new Error("no answer"), stream(["half"], "cut")]), billing);
  const call = () =>
    model.call({ body, session: "s", turnId: "t", step: 1, signal: new AbortController().signal, onDelta: () => void reads.push(null) });
  assert.equal((await call()).usage, { fresh: 0, cacheRead: 0, cacheWrite: 2009, output: 12 });
  assert.equal((await call()).usage, { fresh: 0, cacheRead: 2009, cacheWrite: 0, output: 5 });
  assert.is(reads.length, 3);
  assert.is((await failure(call())).message, "no answer");
  assert.is(billing.totals.calls, 2);
  assert.is((await failure(call())).code, "model_failed");
  assert.is(billing.totals.calls, 3);
});

test("what a provider did not report is unknown in every sum, never 0", () => {
  const known = { fresh: 10, cacheRead: 30, cacheWrite: 0, output: 5 };
  assert.equal(addUsage(noUsage, known), known);
  assert.equal(addUsage(known, { ...known, cacheRead: null }), { fresh: 20, cacheRead: null, cacheWrite: 0, output: 10 });
  assert.equal([promptTokens(known), cacheReadShare(known)], [40, 0.75]);
  assert.equal(
    [promptTokens({ ...known, fresh: null }), cacheReadShare({ ...known, fresh: null }), cacheReadShare(noUsage)],
    [null, null, null],
  );
});

test.run();
