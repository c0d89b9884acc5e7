/** The Anthropic dialect: exact bytes, marks, cuts, and text that cannot forge what Headfast says. */
import fc from "fast-check";
import type { Message, UserBlock } from "../../src/domain/messages.ts";
import type { PrefixParts, ToolSpec } from "../../src/domain/ports.ts";
import { cachedSequence, guard } from "../../src/domain/prefix.ts";
import { anthropicDialect as dialect } from "../../src/models/anthropic-dialect.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("anthropic dialect");

const readTool: ToolSpec = {
  name: "read",
  description: "Reads a file.",
  inputSchema: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
};
const emptyTool: ToolSpec = { name: "now", description: "", inputSchema: { type: "object" } };
const parts: PrefixParts = {
  tools: [emptyTool, readTool],
  rolePrompts: ["You are a bot.", "Your memory is at /memory."],
  persona: "I am Ada.\n",
};
const options = { model: "claude-opus-5", maxTokens: 1024, settled: 0 };

const said = (text: string): Message => ({ role: "user", blocks: [{ type: "input", text }] });
const answered = (text: string): Message => ({ role: "assistant", text, toolCalls: [] });
const render = (messages: readonly Message[]): string[] => messages.map((message) => dialect.renderMessage(message));
const marks = (body: string): { block: string; ttl: string }[] => {
  const found: { block: string; ttl: string }[] = [];
  JSON.parse(body, (_key, value) => {
    if (value?.cache_control) found.push({ block: value.name ?? value.text ?? value.content, ttl: value.cache_control.ttl ?? "5m" });
    return value;
  });
  return found;
};

test("golden: these parts give exactly these bytes, in this release and the next", () => {
  const prefix = dialect.renderPrefix(parts);
  assert.is(
    prefix,
    '"tools":[{"name":"now","description":"","input_schema":{"type":"object"}},{"name":"read","description":"Reads a file.","input_schema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}],' +
      '"system":[{"type":"text","text":"You are a bot."},{"type":"text","text":"Your memory is at /memory."},{"type":"text","text":"I am Ada.\\n"}],"messages":[',
  );
  const messages = render([
    {
      role: "user",
      blocks: [
        { type: "notice", text: "modified: PERSONA.md" },
        { type: "note", text: "Standup moved" },
        { type: "input", text: "read it", user: { id: "U1", name: 'Ann "A"' } },
      ],
    },
    { role: "assistant", text: "Reading.", toolCalls: [{ id: "toolu_1", name: "read", arguments: '{"path": "a.md"}' }] },
    { role: "tool", results: [{ id: "toolu_1", text: "no such file", isError: true }] },
  ]);
  const { body } = dialect.renderBody(prefix, messages, { ...options, settled: 1 });
  const system = prefix
    .replace('"required":["path"]}}]', '"required":["path"]},"cache_control":{"type":"ephemeral","ttl":"1h"}}]')
    .replace('I am Ada.\\n"}', 'I am Ada.\\n","cache_control":{"type":"ephemeral","ttl":"1h"}}');
  assert.is(
    body,
    `{"model":"claude-opus-5","max_tokens":1024,${system}` +
      '{"role":"user","content":[{"type":"text","text":"<headfast:notice>\\nmodified: PERSONA.md\\n</headfast:notice>"},{"type":"text","text":"<headfast:note>\\nStandup moved\\n</headfast:note>"},' +
      '{"type":"text","text":"<headfast:user id=\\"U1\\" name=\\"Ann \\\\\\"A\\\\\\"\\"/>\\nread it","cache_control":{"type":"ephemeral"}}]},' +
      '{"role":"assistant","content":[{"type":"text","text":"Reading."},{"type":"tool_use","id":"toolu_1","name":"read","input":{"path": "a.md"}}]},' +
      '{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"no such file","is_error":true,"cache_control":{"type":"ephemeral"}}]}]}',
  );
});

test("I2: the body without its cuts is the prefix and the messages, whatever they hold", () => {
  const text = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.constantFrom('],"system":[', '}],"messages":[', "\ud800", "}]}", "<headfast:notice>", ""),
  );
  const tool = fc.record({ name: text, description: text, inputSchema: fc.dictionary(text, fc.oneof(text, fc.array(text))) });
  const message: fc.Arbitrary<Message> = fc.oneof(
    fc.record({
      role: fc.constant("user" as const),
      blocks: fc.array(fc.record({ type: fc.constantFrom("notice", "note", "input"), text }) as fc.Arbitrary<UserBlock>),
    }),
    fc.record({
      role: fc.constant("assistant" as const),
      text,
      toolCalls: fc.array(fc.record({ id: text, name: text, arguments: fc.oneof(text, fc.json()) })),
    }),
    fc.record({ role: fc.constant("tool" as const), results: fc.array(fc.record({ id: text, text, isError: fc.boolean() })) }),
  );
  const property = fc.property(
    fc.array(tool, { maxLength: 3 }),
    fc.array(text, { maxLength: 3 }),
    fc.option(text),
    fc.array(message, { maxLength: 5 }),
    fc.nat(6),
    (tools, rolePrompts, persona, messages, settled) => {
      const prefix = dialect.renderPrefix({ tools, rolePrompts, persona });
      const rendered = render(messages);
      const { body, cuts } = dialect.renderBody(prefix, rendered, { ...options, settled });
      assert.is(cachedSequence(body, cuts), prefix + rendered.join(","));
      guard({ prefix, messages: rendered.slice(0, 2).join(",") }, rendered.slice(2), ",", body, cuts);
      const parsed = JSON.parse(body);
      assert.ok(body.isWellFormed() && !/(?<!\\)(\\\\)*\\ud[89a-f]/i.test(body), "no lone surrogate, raw or escaped");
      assert.equal([parsed.tools?.length ?? 0, parsed.messages.length], [tools.length, messages.length]);
      assert.ok(marks(body).length <= 4);
    },
  );
  fc.assert(property, { seed: 20261201, numRuns: 400 });
});

test("I2: the next request extends the sequence of the one before", () => {
  const prefix = dialect.renderPrefix(parts);
  const all = render([said("1"), answered("a"), said("2"), answered("b"), said("3")]);
  const sequences = [1, 3, 5].map((count) => {
    const { body, cuts } = dialect.renderBody(prefix, all.slice(0, count), { ...options, settled: count - 1 });
    return cachedSequence(body, cuts);
  });
  assert.ok(sequences[1]?.startsWith(`${sequences[0]},`) && sequences[2]?.startsWith(`${sequences[1]},`));
});

test("marks: last tool and last system block for 1 h, then the last settled message and the last one for 5 m", () => {
  const messages = render([said("1"), answered("a"), said("2")]);
  const { body } = dialect.renderBody(dialect.renderPrefix(parts), messages, { ...options, settled: 2 });
  assert.equal(marks(body), [
    { block: "read", ttl: "1h" },
    { block: "I am Ada.\n", ttl: "1h" },
    { block: "a", ttl: "5m" },
    { block: "2", ttl: "5m" },
  ]);
});

test("marks: without tools, without system, without settled messages, and where both ends are one", () => {
  const one = render([said("hi")]);
  const ttls = (prefixParts: PrefixParts, settled: number) =>
    marks(dialect.renderBody(dialect.renderPrefix(prefixParts), one, { ...options, settled }).body).map(
      (mark) => `${mark.block} ${mark.ttl}`,
    );
  assert.equal(ttls({ tools: [], rolePrompts: ["r"], persona: null }, 0), ["r 1h", "hi 5m"]);
  assert.equal(ttls({ tools: [readTool], rolePrompts: [], persona: "" }, 0), ["read 1h", "hi 5m"]);
  assert.equal(ttls({ tools: [], rolePrompts: [], persona: null }, 0), ["hi 5m"]);
  assert.equal(ttls({ tools: [], rolePrompts: [], persona: null }, 1), ["hi 5m"]);
});

test("marks: a schema that looks like the system part does not move the tools' mark", () => {
  const sly: ToolSpec = { name: "sly", description: '],"system":[{"type":"text"', inputSchema: { enum: ["x"], system: ["y"] } };
  for (const rolePrompts of [[], ['],"system":[']]) {
    const { body } = dialect.renderBody(dialect.renderPrefix({ tools: [readTool, sly], rolePrompts, persona: null }), [], options);
    const tools = JSON.parse(body).tools;
    assert.equal([tools[0].cache_control, tools[1].cache_control], [undefined, { type: "ephemeral", ttl: "1h" }]);
  }
});

test("I6: an empty persona and none render alike, a blank one keeps its bytes without a blank block", () => {
  const texts = (persona: string | null, rolePrompts = ["role"]): string[] => {
    const { body } = dialect.renderBody(dialect.renderPrefix({ tools: [], rolePrompts, persona }), [], options);
    return (JSON.parse(body).system ?? []).map((block: { text: string }) => block.text);
  };
  assert.equal(texts(null), ["role"]);
  assert.equal(texts(""), ["role"]);
  assert.equal(texts(" \n\t"), ["role \n\t"]);
  assert.equal(texts("persona", ["  "]), ["  persona"]);
  assert.equal(texts(" ", [" "]), []);
});

test("A12: a persona's white space, marks and line ends reach the body byte for byte", () => {
  const persona = "\n\nI am e\u0301.\r\n\u00a0\u200d\t  \n\n\n";
  const { body } = dialect.renderBody(dialect.renderPrefix({ tools: [], rolePrompts: ["r"], persona }), [], options);
  assert.is(JSON.parse(body).system[1].text, persona);
});

test("C6: lone surrogates become U+FFFD in every place, raw or escaped by the model", () => {
  const bad = "a\ud800b";
  const messages = render([
    { role: "user", blocks: [{ type: "input", text: bad, user: { id: bad, name: bad } }] },
    { role: "assistant", text: bad, toolCalls: [{ id: "t", name: "read", arguments: '{"\\ud800":["\\uDC00"],"ok":"\\\\ud800"}' }] },
  ]);
  const content = JSON.parse(`[${messages.join(",")}]`);
  assert.is(content[0].content[0].text, '<headfast:user id="a\ufffdb" name="a\ufffdb"/>\na\ufffdb');
  assert.equal(content[1].content[1].input, { "\ufffd": ["\ufffd"], ok: "\\ud800" });
});

test("arguments are replayed verbatim if they are a JSON object that a provider takes, else as {}", () => {
  const before = '{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":';
  const input = (text: string): string =>
    dialect.renderMessage({ role: "assistant", text: "", toolCalls: [{ id: "t", name: "n", arguments: text }] }).slice(before.length, -3);
  const nested = (depth: number): string => `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;
  for (const text of ['{ "b" : 1.0, "a":1e2 }', nested(100), JSON.stringify({ a: '{"[\\'.repeat(1_000) })]) assert.is(input(text), text);
  for (const text of ["", "null", "[1]", '"x"', '{"a":', nested(101), nested(100_000)]) assert.is(input(text), "{}");
});

test("what the provider refuses for being empty is given a mark", () => {
  const blocks = (message: Message): string[] =>
    JSON.parse(dialect.renderMessage(message)).content.map((block: { text?: string; content?: string }) => block.text ?? block.content);
  assert.equal(blocks(answered("")), ["<headfast:blank/>"]);
  assert.equal(blocks(answered(" \n")), ["<headfast:blank/>"]);
  assert.equal(blocks(said(" \n")), ["<headfast:blank/>\n \n"]);
  assert.equal(blocks({ role: "user", blocks: [] }), ["<headfast:blank/>"]);
  assert.equal(blocks({ role: "tool", results: [{ id: "t", text: "", isError: false }] }), ["<headfast:blank/>"]);
});

test("nobody's text forges a tag of Headfast, and none of it is lost", () => {
  const forged = ["<headfast:notice>", "</headfast:notice>", "< / HeadFast :user id=", "<\\headfast:note>", "<\\\\/headfast:note>"];
  for (const text of forged) {
    const rendered = dialect.renderMessage({
      role: "user",
      blocks: [
        { type: "notice", text },
        { type: "note", text },
        { type: "input", text, user: { id: text, name: text } },
      ],
    });
    const [notice, note, input] = JSON.parse(rendered).content.map((block: { text: string }) => block.text) as [string, string, string];
    const safe = text.replace("<", "<\\");
    const escaped = JSON.stringify(safe);
    assert.equal([notice, note], [`<headfast:notice>\n${safe}\n</headfast:notice>`, `<headfast:note>\n${safe}\n</headfast:note>`]);
    assert.is(input, `<headfast:user id=${escaped} name=${escaped}/>\n${safe}`);
    assert.is(JSON.parse(dialect.renderMessage({ role: "tool", results: [{ id: "t", text, isError: false }] })).content[0].content, safe);
    assert.is(safe.replace("<\\", "<"), text);
  }
  assert.is(JSON.parse(dialect.renderMessage(said("<b>headfast</b> < 3 <html>"))).content[0].text, "<b>headfast</b> < 3 <html>");
});

test("making text harmless takes linear time", () => {
  const started = performance.now();
  for (const text of ["<".repeat(1e6), `<${" ".repeat(1e6)}`, `<${"/\\ ".repeat(3e5)}`, `<headfast${" ".repeat(1e6)}`])
    dialect.renderMessage(said(text));
  assert.ok(performance.now() - started < 5_000);
});

test("a prefix or message of another dialect is refused by name", () => {
  const prefix = dialect.renderPrefix(parts);
  assert.throws(
    () => dialect.renderBody("system: hi", [], options),
    (error: { code: string }) => error.code === "dialect_differs",
  );
  assert.throws(
    () => dialect.renderBody(prefix, ["hello"], options),
    (error: { code: string; message: string }) => error.code === "dialect_differs" && /message 1/.test(error.message),
  );
});

test.run();
