/** I2: the outgoing bytes against what was recorded. Any other body is refused, with part and byte; the right one passes. */
import fc from "fast-check";
import { HeadfastError, PrefixDriftError } from "../../src/domain/errors.ts";
import { limits } from "../../src/domain/limits.ts";
import { cachedSequence, firstDifference, guard, prefixOf, toolsFrom, toolsText } from "../../src/domain/prefix.ts";
import { anthropicDialect as dialect } from "../../src/models/anthropic-dialect.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("the byte guard");

const prefix = prefixOf({ tools: [], rolePrompts: ["Röle 👍."], persona: "You are Ada." }, dialect).text;
const said = (text: string): string => dialect.renderMessage({ role: "user", blocks: [{ type: "input", text }] });

function drift(run: () => void): PrefixDriftError {
  try {
    run();
  } catch (error) {
    assert.instance(error, PrefixDriftError);
    return error as PrefixDriftError;
  }
  throw new Error("the guard let it pass");
}

/** Guards a body that `change` has changed. */
function guarded(recorded: readonly string[], appended: readonly string[], change: (body: string) => string = (body) => body): void {
  const { body, cuts } = dialect.renderBody(prefix, [...recorded, ...appended], { model: "m", maxTokens: 9, settled: recorded.length });
  guard({ prefix, messages: recorded.join(dialect.separator) }, appended, dialect.separator, change(body), cuts);
}

const texts = fc.array(fc.string({ unit: "binary", minLength: 1 }), { maxLength: 5 });

test("what the dialect renders passes, whatever was said, with and without recorded messages", () => {
  fc.assert(
    fc.property(texts, texts, (recorded, appended) => guarded(recorded.map(said), appended.map(said))),
    { seed: 2 },
  );
});

test("one changed, missing or added character anywhere in the sequence is refused, at its byte", () => {
  const recorded = ["one", "zwei 👍 é", "three"].map(said);
  const { body, cuts } = dialect.renderBody(prefix, [...recorded, said("new")], { model: "m", maxTokens: 9, settled: 3 });
  const inCut = (at: number): boolean => cuts.some(([from, to]) => at >= from && at < to);
  let tried = 0;
  for (let at = 0; at < body.length; at += 1) {
    if (inCut(at)) continue;
    tried += 1;
    const error = drift(() => guarded(recorded, [said("new")], (whole) => `${whole.slice(0, at)}\u0001${whole.slice(at + 1)}`));
    const before = cachedSequence(
      body.slice(0, at),
      cuts.filter(([, to]) => to <= at),
    ).length;
    assert.is(error.data.byte, Buffer.byteLength(cachedSequence(body, cuts).slice(0, before)), `at ${at}`);
    assert.is(error.data.part, before < prefix.length ? "system" : "messages");
  }
  assert.ok(tried > 200);
});

test("a message left out, doubled, reordered or changed in its Unicode form is refused", () => {
  const [one, two] = [said("é"), said("two")] as const;
  const send = (sent: readonly string[]) => () => {
    const { body, cuts } = dialect.renderBody(prefix, sent, { model: "m", maxTokens: 9, settled: 2 });
    guard({ prefix, messages: [one, two].join(",") }, [said("new")], ",", body, cuts);
  };
  send([one, two, said("new")])();
  for (const sent of [
    [one, said("new")],
    [one, two, two, said("new")],
    [two, one, said("new")],
    [said("e\u0301"), two, said("new")],
    [one, two],
  ])
    drift(send(sent));
});

test("a body shorter than the prefix says so, and cuts that do not fit are refused", () => {
  assert.is(drift(() => guard({ prefix, messages: "" }, [], ",", prefix.slice(0, 5), [])).data.part, "length");
  for (const cuts of [
    [[3, 2]],
    [
      [0, 2],
      [1, 3],
    ],
    [[0, 99]],
  ] as [number, number][][])
    assert.throws(
      () => cachedSequence("0123456789", cuts),
      (error: unknown) => error instanceof HeadfastError && error.code === "prefix_drift",
    );
  assert.is(
    cachedSequence("0123456789", [
      [0, 2],
      [4, 5],
    ]),
    "2356789",
  );
});

test("firstDifference is the first differing index", () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), fc.string(), (head, a, b) => {
      const [left, right] = [head + a, head + b];
      const at = firstDifference(left, right);
      assert.is(left.slice(0, at), right.slice(0, at));
      assert.ok(left === right || left[at] !== right[at]);
    }),
    { seed: 3 },
  );
});

test("a tool set has one text, whatever its order; doubled names and exceeded limits are configuration errors", () => {
  const tool = (name: string, description = "d") => ({ name, description, inputSchema: { type: "object" } });
  assert.is(toolsText([tool("b"), tool("a")]), toolsText([tool("a"), tool("b")]));
  assert.equal(
    toolsFrom(toolsText([tool("b"), tool("B")])).map(({ name }) => name),
    ["B", "b"],
  );
  assert.throws(() => toolsText([tool("a"), tool("a")]), /two tools are named "a"/);
  assert.throws(() => toolsText([tool("a", "x".repeat(limits.toolBytesMax))]), /the limit is/);
  assert.throws(() => toolsText(Array.from({ length: limits.toolsMax + 1 }, (_, n) => tool(`t${n}`))), /the limit is 128/);
});

test.run();
