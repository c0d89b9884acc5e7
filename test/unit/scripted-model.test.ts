/** The scripted model: what it answers, what it refuses as a provider would, and that it obeys its signal at once. */
import { HeadfastError } from "../../src/domain/errors.ts";
import type { Message } from "../../src/domain/messages.ts";
import type { ModelRequest, PrefixParts } from "../../src/domain/ports.ts";
import { anthropicDialect as dialect } from "../../src/models/anthropic-dialect.ts";
import { fail, hang, later, refuse, slow, stream } from "../../src/models/script.ts";
import { scriptedModel } from "../../src/models/scripted.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("scripted model");

const tools = ["read", "write", "glob", "grep"].map((name) => ({ name, description: name, inputSchema: { type: "object" } }));
const parts: PrefixParts = { tools, rolePrompts: ["You are a bot."], persona: "I am Ada." };
const said = (text: string): Message => ({ role: "user", blocks: [{ type: "input", text, user: { id: "u1", name: "Ann" } }] });
const bodyOf = (messages: Message[], prefix = dialect.renderPrefix(parts)): string =>
  dialect.renderBody(
    prefix,
    messages.map((message) => dialect.renderMessage(message)),
    { model: "scripted", maxTokens: 100, settled: 0 },
  ).body;
const request = (body: string, more: Partial<ModelRequest> = {}): ModelRequest => ({
  body,
  session: "s",
  turnId: "t",
  step: 1,
  signal: new AbortController().signal,
  onDelta: () => {},
  ...more,
});
const rejected = async (promise: Promise<unknown>): Promise<HeadfastError> => {
  const error = await promise.then(
    () => assert.unreachable("was not rejected"),
    (reason: unknown) => reason,
  );
  assert.instance(error, HeadfastError);
  return error as HeadfastError;
};
/** The body with other values at these paths; a function gets the old value. */
function changed(body: string, changes: Record<string, unknown>): string {
  const whole = JSON.parse(body) as Record<string, unknown>;
  for (const [path, value] of Object.entries(changes)) {
    const steps = path.split(".");
    const last = steps.pop() ?? "";
    const parent = steps.reduce((part, step) => part[step] as Record<string, unknown>, whole);
    parent[last] = typeof value === "function" ? value(parent[last]) : value;
  }
  return JSON.stringify(whole);
}

test("records each raw body before anything else, and counts", async () => {
  const model = scriptedModel(["one", new HeadfastError("model_failed", "no")], { keep: 2 });
  const body = bodyOf([said("hi")]);
  await model.call(request(body, { session: "a", turnId: "x", step: 3 }));
  await rejected(model.call(request(body)));
  assert.equal(model.requests[0], { body, session: "a", turnId: "x", step: 3 });
  await rejected(model.call(request("not json")));
  assert.equal([model.requests.length, model.calls, model.requests[1]?.body], [2, 3, "not json"]);
});

test("a script sees the body, what was said last, and tool results", async () => {
  const seen: unknown[] = [];
  const model = scriptedModel(({ lastUserText, toolResults, call, step, turnId, session, parsed }) => {
    seen.push({ lastUserText, toolResults, call, step, turnId, session, system: parsed.system?.length });
    return "ok";
  });
  await model.call(request(bodyOf([said("line 1\nline 2")])));
  const results: Message[] = [
    { role: "assistant", text: "", toolCalls: [{ id: "c1", name: "read", arguments: "{}" }] },
    { role: "tool", results: [{ id: "c1", text: "gone", isError: true }] },
  ];
  await model.call(request(bodyOf([said("go"), ...results]), { step: 2 }));
  assert.equal(seen, [
    { lastUserText: "line 1\nline 2", toolResults: [], call: 1, step: 1, turnId: "t", session: "s", system: 2 },
    {
      lastUserText: "go",
      toolResults: [{ id: "c1", text: "gone", isError: true }],
      call: 2,
      step: 2,
      turnId: "t",
      session: "s",
      system: 2,
    },
  ]);
});

test("a list gives one reply a call and refuses the call beyond its end", async () => {
  const model = scriptedModel(["a", { text: "b" }]);
  const body = bodyOf([said("hi")]);
  assert.is((await model.call(request(body))).message.text, "a");
  assert.is((await model.call(request(body))).message.text, "b");
  assert.is((await rejected(model.call(request(body)))).code, "model_refused");
});

test("tool calls get ids that are stable for a body and new for the next", async () => {
  const reply = {
    tools: [
      { name: "read", args: { path: "a" } },
      { name: "read", args: "{broken" },
    ],
  };
  const ids = async (text: string) =>
    (await scriptedModel([reply]).call(request(bodyOf([said(text)])))).message.toolCalls.map((call) => call.id);
  const [first, again, other] = [await ids("x"), await ids("x"), await ids("y")];
  assert.equal(first, again);
  assert.is(new Set([...first, ...other]).size, 4);
  const { message } = await scriptedModel([reply]).call(request(bodyOf([said("x")])));
  assert.equal(
    message.toolCalls.map((call) => call.arguments),
    ['{"path":"a"}', "{broken"],
  );
});

test("later, fail and refuse are a provider's errors with their kinds", async () => {
  const model = scriptedModel([later(3_000), later(), fail("500"), refuse("no"), new HeadfastError("model_timeout", "slow")]);
  const errors: unknown[] = [];
  for (let i = 0; i < 5; i += 1) {
    const error = await rejected(model.call(request(bodyOf([said("hi")]))));
    errors.push([error.code, error.kind, error.retryAfterMs]);
  }
  assert.equal(errors, [
    ["model_later", "later", 3_000],
    ["model_later", "later", undefined],
    ["model_failed", "retry", undefined],
    ["model_refused", "terminal", undefined],
    ["model_timeout", "retry", undefined],
  ]);
});

test("stream gives deltas, and may break off half way", async () => {
  const deltas: string[] = [];
  const model = scriptedModel([stream(["a", "b"]), stream(["c", "d"], "cut"), "whole"]);
  const ask = () => model.call(request(bodyOf([said("hi")]), { onDelta: (text) => deltas.push(text) }));
  assert.is((await ask()).message.text, "ab");
  assert.is((await rejected(ask())).code, "model_failed");
  await ask();
  assert.equal(deltas, ["a", "b", "c", "d", "whole"]);
});

test("slow waits by the system port, and is refused without one", async () => {
  const slept: number[] = [];
  const system = { sleep: async (ms: number) => void slept.push(ms) };
  assert.is((await scriptedModel([slow(250, "late")], { system }).call(request(bodyOf([said("hi")])))).message.text, "late");
  assert.equal(slept, [250]);
  assert.is((await rejected(scriptedModel([slow(1, "x")]).call(request(bodyOf([said("hi")]))))).code, "configuration");
});

test("an aborted call ends at once, with the reason as cause, and says nothing more", async () => {
  const lost = new HeadfastError("lease_lost", "the lease is gone");
  const cases: [unknown, string, string][] = [
    [lost, "lease_lost", "later"],
    ["draining", "draining", "later"],
    [new DOMException("too long", "TimeoutError"), "model_timeout", "retry"],
    [new Error("cancelled"), "model_later", "later"],
  ];
  for (const [reason, code, kind] of cases) {
    for (const reply of [hang(), slow(1e9, "never")]) {
      const deltas: string[] = [];
      const abort = new AbortController();
      const model = scriptedModel([reply], { system: { sleep: () => new Promise(() => {}) } });
      const call = model.call(request(bodyOf([said("hi")]), { signal: abort.signal, onDelta: (text) => deltas.push(text) }));
      abort.abort(reason);
      const error = await rejected(call);
      assert.equal([error.code, error.kind, error.cause, deltas], [code, kind, reason, []]);
    }
  }
  const model = scriptedModel(["x"]);
  await rejected(model.call(request("{}", { signal: AbortSignal.abort(lost) })));
  assert.is(model.calls, 0);
});

test("refuses with the reason what a provider refuses with 400", async () => {
  const asked: Message = { role: "assistant", text: "b", toolCalls: [{ id: "c1", name: "read", arguments: "{}" }] };
  const good = bodyOf([said("a"), asked, { role: "tool", results: [{ id: "c1", text: "r", isError: false }] }]);
  const mark = { type: "ephemeral" };
  const hour = { type: "ephemeral", ttl: "1h" };
  const text = { type: "text", text: "x" };
  const call = { type: "tool_use", id: "c1", name: "read", input: {} };
  const broken: [Record<string, unknown>, RegExp][] = [
    [{ model: undefined }, /model/],
    [{ max_tokens: 0 }, /max_tokens/],
    [{ temprature: 1 }, /temprature: extra inputs/],
    [{ messages: [] }, /at least one message/],
    [{ messages: (old: unknown[]) => old.slice(1) }, /first message must be the user's/],
    [{ messages: (old: unknown[]) => old.slice(0, -1) }, /end with a user message/],
    [{ "messages.0.role": "system" }, /messages\.0\.role/],
    [{ "messages.0.content": [] }, /messages\.0\.content: must not be empty/],
    [{ "messages.0.content.0.text": " \n" }, /messages\.0\.content\.0: text content blocks/],
    [{ "messages.0.content.0.text": "\ud800" }, /not valid Unicode/],
    [{ "system.1.text": "" }, /system\.1/],
    [{ "messages.2.content.0.content": "" }, /messages\.2\.content\.0/],
    [{ "messages.2.content": [text] }, /without tool_result blocks immediately after: c1/],
    [{ "messages.2.content": (old: unknown[]) => [text, ...old] }, /must stand before other content/],
    [{ "messages.2.content.0.tool_use_id": "c2" }, /without tool_result.*c1/],
    [{ "messages.2.content": (old: unknown[]) => [...old, ...old] }, /unexpected tool_use_id.*c1/],
    [{ "messages.0.content": (old: unknown[]) => [...old, call] }, /"tool_use" is not allowed for the role user/],
    [{ "messages.1.content.1.id": "a b" }, /id: must match/],
    [{ "messages.1.content.1.input": "{}" }, /input: must be an object/],
    [{ messages: (old: unknown[]) => [...old, ...old.slice(1)] }, /ids must be unique: c1/],
    [{ "tools.0.name": "ä" }, /tools\.0\.name/],
    [{ "tools.1.name": "read" }, /unique/],
    [{ "tools.0.input_schema": {} }, /input_schema\.type/],
    [{ "messages.0.content.0.cache_control": mark, "messages.1.content.0.cache_control": mark }, /maximum of 4/],
    [{ "tools.3.cache_control": mark }, /1h must not come after/],
    [{ "messages.0.content.0.cache_control": mark, "messages.2.content.0.cache_control": hour }, /1h must not come after/],
  ];
  const model = scriptedModel(() => "ok");
  assert.is((await model.call(request(good))).message.text, "ok");
  for (const [changes, reason] of broken) {
    const error = await rejected(model.call(request(changed(good, changes))));
    assert.is(error.code, "model_refused");
    assert.match(error.message, reason);
  }
  assert.match((await rejected(model.call(request("[]")))).message, /not a JSON object/);
});

test("the small assistant uses file tools when asked in plain words", async () => {
  const model = scriptedModel();
  const asked = async (text: string) =>
    (await model.call(request(bodyOf([said(text)])))).message.toolCalls.map((call) => [call.name, JSON.parse(call.arguments)]);
  assert.equal(await asked("read notes.md"), [["read", { path: "notes.md" }]]);
  assert.equal(await asked("Write a/b.md: two\nlines"), [["write", { path: "a/b.md", content: "two\nlines\n" }]]);
  assert.equal(await asked("list"), [["glob", { pattern: "**" }]]);
  assert.equal(await asked("find for cats"), [["grep", { pattern: "cats" }]]);
  const [name, args] = (await asked("remember that Ann likes tea"))[0] as [string, { path: string; content: string }];
  assert.equal([name, args.content], ["write", "Ann likes tea\n"]);
  assert.match(args.path, /^remembered\/ann-likes-tea-[0-9a-f]{6}\.md$/);
  assert.equal(await asked("hello there"), []);
});

test("the small assistant says what tools gave, what it was told, who it is, and what it lacks", async () => {
  const model = scriptedModel();
  const text = async (messages: Message[], prefix?: string) => (await model.call(request(bodyOf(messages, prefix)))).message.text;
  const turn = async (ask: string, result: string, isError: boolean) => {
    const first = await model.call(request(bodyOf([said(ask)])));
    const id = first.message.toolCalls[0]?.id ?? "";
    return text([said(ask), first.message, { role: "tool", results: [{ id, text: result, isError }] }]);
  };
  assert.is(await turn("read notes.md", "buy milk", false), "notes.md says:\nbuy milk");
  assert.is(await turn("read notes.md", "no such file", true), "That did not work: no such file");
  assert.is(await text([said("who are you?")]), "I am Ada.");
  assert.match(
    await text([said("read a.md")], dialect.renderPrefix({ tools: [], rolePrompts: ["r"], persona: null })),
    /no tool named read/,
  );
  const noticed: Message = {
    role: "user",
    blocks: [
      { type: "notice", text: "modified: PERSONA.md" },
      { type: "input", text: "hi" },
    ],
  };
  assert.match(await text([noticed]), /^\(I was told: modified: PERSONA.md\)\nYou said: hi\n/);
});

test("name, limit key, dialect and reader can be chosen", async () => {
  const other = { ...dialect, id: "other" };
  const model = scriptedModel(["x"], {
    name: "m",
    maxTokens: 7,
    limitKey: "acme",
    dialect: other,
    read: () => ({ model: "m", max_tokens: 7, messages: [] }),
  });
  assert.equal([model.name, model.maxTokens, model.limitKey, model.dialect.id], ["m", 7, "acme", "other"]);
  assert.is((await model.call(request("anything"))).message.text, "x");
});

test.run();
