/** Tools from a zod schema: what the model is told, what it hears of a mistake, and the bounds of an answer. */
import { z } from "zod";
import { runTools } from "../../src/actors/tooling.ts";
import type { HeadfastError } from "../../src/domain/errors.ts";
import { limits } from "../../src/domain/limits.ts";
import type { ToolContext } from "../../src/domain/ports.ts";
import { prefixOf, toolsFrom, toolsText } from "../../src/domain/prefix.ts";
import { defineBot } from "../../src/main.ts";
import { anthropicDialect } from "../../src/models/anthropic-dialect.ts";
import { scriptedModel } from "../../src/models/scripted.ts";
import { boundLine, boundText, Listing } from "../../src/tools/bounded.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { accepted, testLedger } from "../support/ledger.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("define tool");
const context: ToolContext = { signal: new AbortController().signal, callId: "c", session: "s", turnId: "t", bot: "b" };
const input = z.object({
  city: z.string().min(1).describe("Where"),
  days: z.int().min(1).max(7).default(1),
  unit: z.enum(["C", "F"]).optional(),
});
const weather = defineTool({
  name: "weather",
  description: "The weather.",
  input,
  run: ({ city, days, unit = "C" }) => `${city} ${days * 2} ${unit}`,
});

async function failure(work: () => unknown): Promise<HeadfastError> {
  try {
    await work();
  } catch (error) {
    return error as HeadfastError;
  }
  throw new Error("nothing was thrown");
}

test("the schema is plain JSON in the order it was written, without $schema, and a default is not required", () => {
  assert.is(
    JSON.stringify(weather.inputSchema),
    '{"type":"object","properties":{"city":{"type":"string","minLength":1,"description":"Where"},"days":{"default":1,"type":"integer","minimum":1,"maximum":7},"unit":{"type":"string","enum":["C","F"]}},"required":["city"]}',
  );
});

test("I1: the tool gives the same prefix before and after it was frozen and read back", () => {
  const parts = { rolePrompts: ["r"], persona: null };
  const before = prefixOf({ ...parts, tools: [weather] }, anthropicDialect);
  assert.equal(prefixOf({ ...parts, tools: toolsFrom(toolsText([weather])) }, anthropicDialect), before);
});

test("run gets what the schema makes of the arguments", async () => {
  assert.is(await weather.run({ city: "Oslo" }, context), "Oslo 2 C");
  assert.is(await weather.run({ city: "Oslo", days: 3, unit: "F", more: 1 }, context), "Oslo 6 F");
});

test("arguments that do not fit say what is wrong and where", async () => {
  const error = await failure(() => weather.run({ city: "", days: 9 }, context));
  assert.is(error.code, "tool_failed");
  assert.match(error.message, /^weather: the arguments do not fit/);
  assert.match(error.message, /at city/);
  assert.match(error.message, /<=7[\s\S]*at days/);
  for (const args of [undefined, null, "x", []]) assert.is((await failure(() => weather.run(args, context))).code, "tool_failed");
});

test("a complaint about very many fields stays bounded", async () => {
  const many = defineTool({ name: "many", description: "", input: z.object({ list: z.array(z.string()) }), run: () => "" });
  const error = await failure(() => many.run({ list: Array.from({ length: 50_000 }, () => 1) }, context));
  assert.ok(Buffer.byteLength(error.message) < limits.errorBytesMax + 200);
});

test("an answer that is no text is an error; a throw of the tool is passed on as it is", async () => {
  const odd = defineTool({ name: "odd", description: "", input: z.object({}), run: () => 7 as unknown as string });
  assert.match((await failure(() => odd.run({}, context))).message, /odd: it answered with number/);
  const boom = new Error("boom");
  const bad = defineTool({
    name: "bad",
    description: "",
    input: z.object({}),
    run: () => {
      throw boom;
    },
  });
  assert.is(await failure(() => bad.run({}, context)), boom);
});

test("A2: names that providers refuse are refused at definition, with the reason", async () => {
  for (const name of ["ä", "", "a b", "a.b", "x".repeat(65), "read\n", undefined as unknown as string]) {
    const error = await failure(() => defineTool({ name, description: "", input: z.object({}), run: () => "" }));
    assert.is(error.code, "configuration");
    assert.match(error.message, /must match/);
  }
  for (const name of ["Zeta", "alpha_2", "x".repeat(64), "a-b"])
    assert.is(defineTool({ name, description: "", input: z.object({}), run: () => "" }).name, name);
});

test("an input that is no object, or cannot be written as JSON Schema, is refused at definition", async () => {
  for (const schema of [z.string(), z.array(z.string()), z.object({ at: z.date() }), z.object({ n: z.bigint() }), {} as z.ZodType]) {
    assert.is((await failure(() => defineTool({ name: "t", description: "", input: schema, run: () => "" }))).code, "configuration");
  }
});

interface Told {
  text: string;
  finished: Record<string, unknown>;
}

/** What the model and the host are told of a tool's answer. */
async function told(answer: string | Error): Promise<Told> {
  const loud = defineTool({
    name: "loud",
    description: "",
    input: z.object({}),
    run: () => {
      if (answer instanceof Error) throw answer;
      return answer;
    },
  });
  const ledger = testLedger();
  const events: Record<string, unknown>[] = [];
  const { message } = await runTools(
    {
      ledger,
      bot: defineBot({ name: "ada", model: scriptedModel(), tools: [loud] }),
      frozen: new Set(["loud"]),
      turn: await accepted(ledger, "t"),
      step: 1,
      wrote: [],
      resumed: false,
      signal: new AbortController().signal,
      onCall: (type, _call, data) => type === "tool.finished" && events.push(data),
    },
    [{ id: "c", name: "loud", arguments: "{}" }],
  );
  const [result] = message.role === "tool" ? message.results : [];
  return { text: result?.text ?? "", finished: events[0] ?? {} };
}

test("D4: an answer is cut at a character of any width, says to model and host how much is missing, and stays well-formed", async () => {
  for (let shift = 0; shift < 4; shift += 1) {
    const whole = "x".repeat(shift) + "😀".repeat(limits.toolResultBytesMax / 4 + 10);
    for (const answer of [whole, new Error(whole)]) {
      const { text, finished } = await told(answer);
      const [, kept = "", cut, all] = /^([\s\S]*)\n\[cut: (\d+) of (\d+) bytes are left out\]$/.exec(text) ?? [];
      assert.ok(Buffer.byteLength(text) <= limits.toolResultBytesMax && Buffer.byteLength(text) > limits.toolResultBytesMax - 120);
      assert.ok(whole.startsWith(kept) && kept.isWellFormed());
      assert.is(Buffer.byteLength(kept) + Number(cut), Number(all));
      assert.equal(finished, { tool: "loud", is_error: answer instanceof Error, cut_bytes: Number(cut) });
    }
  }
  const fits = "x".repeat(limits.toolResultBytesMax);
  assert.equal(await told(fits), { text: fits, finished: { tool: "loud", is_error: false } });
  assert.is((await told("a\ud800")).text, "a\ufffd");
});

test("bounds: what fits is untouched, what does not is cut within the bound", () => {
  assert.is(boundText("exact", 5), "exact");
  assert.is(boundLine("exact", 5), "exact");
  assert.is(boundLine("日本語", 8), "日…");
  for (let max = 60; max < 80; max += 1) assert.ok(Buffer.byteLength(boundText("日".repeat(100), max)) <= max);
});

test("a listing keeps whole lines within both limits and counts the rest", () => {
  const short = new Listing();
  for (let i = 0; i < limits.toolLinesMax + 5; i += 1) short.add(`${i}`);
  assert.match(short.text("none", "files", "ask for fewer", ["[note]"]), /\n1999\n\[5 more files: ask for fewer\]\n\[note\]$/);
  const long = new Listing();
  for (let i = 0; i < 300; i += 1) long.add("日".repeat(100));
  const text = long.text("none", "lines", "ask for fewer");
  assert.ok(Buffer.byteLength(text) <= limits.toolResultBytesMax);
  const kept = text.split("\n").length - 1;
  assert.match(text, new RegExp(`\\[${300 - kept} more lines: ask for fewer\\]$`));
  assert.is(new Listing().text("none", "files", ""), "none");
});

test.run();
