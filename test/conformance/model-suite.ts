/** What every `Model` must do, whoever answers. `make` builds a model that is driven into one situation at a time. */
import { type ErrorCode, HeadfastError } from "../../src/domain/errors.ts";
import type { Model, ModelReply, ModelRequest } from "../../src/domain/ports.ts";
import { assert, suite } from "../support/suite.ts";

export type Situation =
  /** Answers with this text, in one piece or several. */
  | { kind: "answers"; text: string }
  /** Asks for the tool `lookup` with `{"q":"x"}`, twice. */
  | { kind: "asks" }
  /** Says "come back later", with this many milliseconds or without saying when. */
  | { kind: "later"; ms: number | null }
  | { kind: "fails" }
  /** Begins to answer and breaks off. */
  | { kind: "breaks_off" }
  /** Never answers. */
  | { kind: "hangs" };

export interface ModelUnderTest {
  model: Model;
  /** Ends what `make` started. */
  close?(): Promise<void>;
}

/** Adds the suite and runs it. */
export function modelSuite(name: string, make: (situation: Situation) => Promise<ModelUnderTest> | ModelUnderTest): void {
  const test = suite(`model: ${name}`);
  const within = async <T>(situation: Situation, use: (model: Model) => Promise<T>): Promise<T> => {
    const { model, close } = await make(situation);
    try {
      return await use(model);
    } finally {
      await close?.();
    }
  };

  test("answers with text, whose deltas are that text, and with a usage of whole numbers or null", async () => {
    const { reply, deltas } = await within({ kind: "answers", text: "héllo 日本" }, (model) => ask(model));
    assert.equal(reply.message, { role: "assistant", text: "héllo 日本", toolCalls: [] });
    assert.is(deltas.join(""), "héllo 日本");
    assert.equal(Object.keys(reply.usage).sort(), ["cacheRead", "cacheWrite", "fresh", "output"]);
    for (const tokens of Object.values(reply.usage)) assert.ok(tokens === null || (Number.isInteger(tokens) && tokens >= 0));
  });

  test("asks for tools with distinct ids and JSON text as arguments", async () => {
    const { reply } = await within({ kind: "asks" }, (model) => ask(model));
    assert.equal(
      reply.message.toolCalls.map((call) => [call.name, JSON.parse(call.arguments)]),
      [
        ["lookup", { q: "x" }],
        ["lookup", { q: "x" }],
      ],
    );
    assert.is(new Set(reply.message.toolCalls.map((call) => call.id)).size, 2);
  });

  test("I12: later is an outage, with the provider's time where it gave one", async () => {
    assert.equal(await within({ kind: "later", ms: 3_000 }, (model) => failure(model)), ["model_later", "later", 3_000]);
    assert.equal(await within({ kind: "later", ms: null }, (model) => failure(model)), ["model_later", "later", undefined]);
  });

  test("a failure, and an answer that breaks off, are attempts", async () => {
    assert.equal((await within({ kind: "fails" }, (model) => failure(model))).slice(0, 2), ["model_failed", "retry"]);
    assert.equal((await within({ kind: "breaks_off" }, (model) => failure(model))).slice(0, 2), ["model_failed", "retry"]);
  });

  test("a body that is not valid is refused for good", async () => {
    assert.equal((await within({ kind: "answers", text: "x" }, (model) => failure(model, { body: "{" }))).slice(0, 2), [
      "model_refused",
      "terminal",
    ]);
    const noMessages = (model: Model) =>
      model.dialect.renderBody(prefixFor(model), [], { model: model.name, maxTokens: 1, settled: 0 }).body;
    assert.equal((await within({ kind: "answers", text: "x" }, (model) => failure(model, { body: noMessages(model) }))).slice(0, 2), [
      "model_refused",
      "terminal",
    ]);
  });

  test("an abort ends a running call at once, with the reason's code and cause", async () => {
    const reason = new HeadfastError("lease_lost", "gone");
    const abort = new AbortController();
    const error = await within({ kind: "hangs" }, async (model) => {
      const call = thrown(model.call(requestFor(model, { signal: abort.signal })));
      setImmediate(() => abort.abort(reason));
      return call;
    });
    assert.equal([error.code, error.kind, error.cause], ["lease_lost", "later", reason]);
  });

  test("a call with an aborted signal does not begin", async () => {
    const reason = new HeadfastError("draining", "going");
    const error = await within({ kind: "answers", text: "x" }, (model) =>
      thrown(model.call(requestFor(model, { signal: AbortSignal.abort(reason) }))),
    );
    assert.is(error.code, "draining");
  });

  test("two calls of one model at once do not mix", async () => {
    const replies = await within({ kind: "answers", text: "same" }, (model) => Promise.all([ask(model), ask(model)]));
    for (const { reply, deltas } of replies) assert.equal([reply.message.text, deltas.join("")], ["same", "same"]);
  });

  test("says who it is: a name, a key of its limit, room to answer, a dialect", async () => {
    await within({ kind: "answers", text: "x" }, async (model) => {
      assert.ok(model.name !== "" && model.limitKey !== "" && model.dialect.id !== "");
      assert.ok(Number.isInteger(model.maxTokens) && model.maxTokens > 0);
    });
  });

  test.run();
}

function prefixFor(model: Model): string {
  return model.dialect.renderPrefix({
    tools: [{ name: "lookup", description: "Looks up.", inputSchema: { type: "object" } }],
    rolePrompts: ["You are a bot."],
    persona: null,
  });
}

function requestFor(model: Model, more: Partial<ModelRequest> = {}): ModelRequest {
  const message = model.dialect.renderMessage({ role: "user", blocks: [{ type: "input", text: "hi" }] });
  const { body } = model.dialect.renderBody(prefixFor(model), [message], { model: model.name, maxTokens: model.maxTokens, settled: 0 });
  return { body, session: "s", turnId: "t", step: 1, signal: new AbortController().signal, onDelta: () => {}, ...more };
}

async function ask(model: Model): Promise<{ reply: ModelReply; deltas: string[] }> {
  const deltas: string[] = [];
  const reply = await model.call(requestFor(model, { onDelta: (text) => deltas.push(text) }));
  return { reply, deltas };
}

async function failure(model: Model, more: Partial<ModelRequest> = {}): Promise<[ErrorCode, string, number | undefined]> {
  const error = await thrown(model.call(requestFor(model, more)));
  return [error.code, error.kind, error.retryAfterMs];
}

async function thrown(call: Promise<unknown>): Promise<HeadfastError> {
  const error = await call.then(
    () => assert.unreachable("the call did not fail"),
    (reason: unknown) => reason,
  );
  assert.instance(error, HeadfastError);
  return error as HeadfastError;
}
