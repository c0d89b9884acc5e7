/** Each claim of the demo must be able to fail: it is given the right answer, then wrong ones. */
import type { SentBody } from "../../demo/bodies.ts";
import * as claims from "../../demo/claims.ts";
import { parseOptions } from "../../demo/options.ts";
import { type Bill, cheaper, departsInPrefix, naiveBody, onlyAppends } from "../../demo/twins.ts";
import { anthropicDialect, type Message } from "../../src/index.ts";
import { prefixOf } from "../../src/prefix.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("demo claims");
const nameOf = (worker: string): string => worker;

function asked<T>(result: T): { query: string; result: T } {
  return { query: "the question", result };
}

function row(turnId: string, number: number, more: Partial<claims.LogRow> = {}): claims.LogRow {
  return {
    session: "s",
    seq: number,
    kind: "step",
    turn: { number, turn_id: turnId, generation: 0 },
    worker: "one",
    outcome: "done",
    ...more,
  };
}

function holds(claim: claims.Claim): void {
  assert.ok(claim.ok, claim.shown);
  assert.is(claim.query.includes("the question") || claim.query.includes("raw bodies") || claim.query.includes("prices"), true);
}

function fails(claim: claims.Claim): void {
  assert.not.ok(claim.ok, `held, though it shows: ${claim.shown}`);
}

// ── the log ──────────────────────────────────────────────────────────────────────────────────────

test("order: turns swapped, missing, doubled, dead, or with a hole in their numbers are seen", () => {
  const sent = new Map([["s", ["a", "b"]]]);
  const claim = (rows: claims.LogRow[]): claims.Claim => claims.answeredInOrder("order", sent, asked(rows), nameOf);
  holds(claim([row("a", 1), row("b", 2)]));
  fails(claim([row("b", 1), row("a", 2)]));
  fails(claim([row("a", 1)]));
  fails(claim([row("a", 1), row("b", 2), row("b", 3)]));
  fails(claim([row("a", 1), row("b", 2, { outcome: "dead" })]));
  fails(claim([row("a", 1), row("b", 3)]));
  fails(claim([]));
  fails(claims.answeredInOrder("order", new Map(), asked([]), nameOf));
});

test("workers: one alone is not several", () => {
  holds(claims.severalWorked("several", asked(["one", "two"]), nameOf));
  fails(claims.severalWorked("several", asked(["one", "one"]), nameOf));
});

test("takeover: a step by the wrong worker, a step twice, two outcomes or none are seen", () => {
  const first = row("a", 1, { step: 1, worker: "one" });
  const { outcome: _, ...open } = first;
  const second = row("a", 1, { step: 2, worker: "two" });
  const claim = (rows: claims.LogRow[]): claims.Claim => claims.finishedElsewhere("takeover", asked(rows), "one", nameOf);
  holds(claim([open, second]));
  fails(claim([open, { ...second, worker: "one" }]));
  fails(claim([{ ...open, worker: "two" }, second]));
  fails(claim([open, open, second]));
  fails(claim([open, second, second]));
  fails(claim([first, second]));
  fails(claim([open]));
});

test("takeover: an attempt that was spent, or a takeover that nobody noted, is seen", () => {
  const turn: claims.TurnRow = {
    session: "s",
    number: 1,
    turn_id: "a",
    generation: 0,
    attempts_spent: 0,
    crashes: 1,
    stall_seen: { count: 1 },
  };
  const claim = (rows: claims.TurnRow[]): claims.Claim => claims.takeoverIsNoAttempt("no attempt", asked(rows));
  holds(claim([turn]));
  holds(claim([{ ...turn, crashes: 0 }]));
  fails(claim([{ ...turn, attempts_spent: 1 }]));
  const { stall_seen: _, ...unseen } = turn;
  fails(claim([unseen]));
  fails(claim([]));
});

test("letters: another cause, no stack, no letter, an attempt too few, a second replay are seen", () => {
  const dead = row("a", 1, { kind: "dead", outcome: "dead", cause: { code: "model_failed", message: "broken", stack: "at here" } });
  holds(claims.deadWithCause("dead", asked([dead]), "model_failed"));
  fails(
    claims.deadWithCause("dead", asked([{ ...dead, cause: { code: "unexpected", message: "broken", stack: "at here" } }]), "model_failed"),
  );
  fails(claims.deadWithCause("dead", asked([{ ...dead, cause: { code: "model_failed", message: "broken" } }]), "model_failed"));
  fails(claims.deadWithCause("dead", asked([row("a", 1)]), "model_failed"));
  const again = (generation: number): claims.LogRow => row("a", 2, { turn: { number: 2, turn_id: "a", generation } });
  holds(claims.replayedOnce("once", asked([dead, again(1)])));
  fails(claims.replayedOnce("once", asked([dead])));
  fails(claims.replayedOnce("once", asked([dead, again(1), again(2)])));
  const attempt = {
    number: 1,
    worker: "one",
    started_at: "2026-12-01T10:00:00.000Z",
    ended_at: "",
    error: { code: "model_failed", message: "" },
  };
  const turn: claims.TurnRow = {
    session: "s",
    number: 1,
    turn_id: "a",
    generation: 0,
    attempts_spent: 2,
    crashes: 0,
    attempts: [attempt, { ...attempt, number: 2 }],
  };
  holds(claims.attemptsKept("kept", asked([turn]), 2, nameOf));
  fails(claims.attemptsKept("kept", asked([{ ...turn, attempts: [attempt] }]), 2, nameOf));
  fails(claims.attemptsKept("kept", asked([]), 2, nameOf));
});

test("outcomes: a turn without one, with two, or one that nobody sent is seen", () => {
  const turns = ["a", "b"].map(
    (turn_id, i): claims.TurnRow => ({ session: "s", number: i + 1, turn_id, generation: 0, attempts_spent: 0, crashes: 0 }),
  );
  const claim = (rows: claims.LogRow[]): claims.Claim => claims.oneOutcomeEach("one each", asked(turns), asked(rows));
  holds(claim([row("a", 1), row("b", 2)]));
  fails(claim([row("a", 1)]));
  fails(claim([row("a", 1), row("b", 2), row("b", 3)]));
  fails(claim([row("a", 1), row("c", 2)]));
  fails(claims.oneOutcomeEach("one each", asked([]), asked([])));
});

test("Redis and counts: a key too few, a key too many, a number off by one", () => {
  const lists = (...lengths: number[]): claims.Claim =>
    claims.jobsWait("waiting", asked(new Map(lengths.map((length, i) => [`k${i}`, length]))), 2, 3);
  holds(lists(3, 3));
  fails(lists(3, 2));
  fails(lists(3));
  fails(lists());
  holds(claims.noKeys("gone", asked([])));
  fails(claims.noKeys("gone", asked(["k"])));
  holds(claims.countIs("count", asked(2), 2));
  fails(claims.countIs("count", asked(3), 2));
});

// ── the bytes ────────────────────────────────────────────────────────────────────────────────────

const tools = [{ name: "read", description: "Reads.", inputSchema: { type: "object" } }];

function textBlock(type: "input" | "notice", text: string): Message {
  return {
    role: "user",
    blocks:
      type === "input"
        ? [{ type, text }]
        : [
            { type, text },
            { type: "input", text: "more" },
          ],
  };
}

/** A body as Headfast sends it. */
function body(
  persona: string,
  messages: readonly Message[],
  turnId: string,
  naive = persona,
): SentBody & Required<Pick<SentBody, "naive">> {
  const prefix = prefixOf({ tools, rolePrompts: ["role", "memory"], persona }, anthropicDialect);
  const rendered = messages.map((message) => anthropicDialect.renderMessage(message));
  const { body: text } = anthropicDialect.renderBody(prefix.text, rendered, { model: "m", maxTokens: 10, settled: messages.length - 1 });
  return { worker: "one", session: "s", turnId, step: 1, at: 0, body: text, naive: { persona: naive, listing: "a.md" } };
}

const hello = textBlock("input", 'a "cache_control" in quotes, and "messages":[');
const reply: Message = { role: "assistant", text: "hello", toolCalls: [] };
const first = body("I am Ada.", [hello], "t1");
const second = body("I am Ada.", [hello, reply, textBlock("notice", 'modified: "x"')], "t2");
const hash = prefixOf({ tools, rolePrompts: ["role", "memory"], persona: "I am Ada." }, anthropicDialect).sha256;

test("prefix: read from raw bodies it is the one that was frozen; another in the log, another that was sent, no edit are seen", () => {
  const edit = { before: "1", after: "2" };
  const other = body("I am Eve.", [hello], "t3");
  holds(claims.prefixStayed("stayed", asked([hash]), [first, second], edit));
  fails(claims.prefixStayed("stayed", asked([hash, "f".repeat(64)]), [first, second], edit));
  fails(claims.prefixStayed("stayed", asked(["f".repeat(64)]), [first, second], edit));
  fails(claims.prefixStayed("stayed", asked([hash]), [first, other], edit));
  fails(claims.prefixStayed("stayed", asked([hash]), [first, second], { before: "1", after: "1" }));
  fails(claims.prefixStayed("stayed", asked([hash]), [], edit));
  const stored = asked([{ session: "s", prefix_sha256: hash }]);
  holds(claims.onePrefixEach("one each", stored, [first, second]).claim);
  assert.equal(claims.onePrefixEach("one each", stored, [first, other]).perSession, { s: 2 });
  fails(claims.onePrefixEach("one each", stored, [first, other]).claim);
});

test("snapshots: the line in the old session, or in none, is seen", () => {
  const claim = (old: string, fresh: string): claims.Claim =>
    claims.newPersonaForNewSession(
      "new",
      asked([
        { _id: "old", persona_snapshot: old },
        { _id: "new", persona_snapshot: fresh },
      ]),
      { old: "old", fresh: "new" },
      "the line",
    );
  holds(claim("before", "before and the line"));
  fails(claim("before and the line", "before and the line"));
  fails(claim("before", "before"));
  fails(
    claims.newPersonaForNewSession("new", asked([{ _id: "new", persona_snapshot: "the line" }]), { old: "old", fresh: "new" }, "the line"),
  );
});

test("notices: one too many, one too few, of another path, with more than one path are seen", () => {
  const told = (path: string): claims.LogRow => row("b", 2, { notice: `Something changed.\nmodified: "${path}"` });
  const expected = new Map([
    ["a", null],
    ["b", "x.md"],
  ]);
  const claim = (rows: claims.LogRow[]): claims.Claim => claims.noticesAre("told", asked(rows), expected);
  holds(claim([row("a", 1), told("x.md")]));
  fails(claim([row("a", 1, { notice: 'Something changed.\nmodified: "x.md"' }), told("x.md")]));
  fails(claim([row("a", 1), row("b", 2)]));
  fails(claim([row("a", 1), told("y.md")]));
  fails(claim([row("a", 1), told('x.md"\nmodified: "y.md')]));
  fails(claim([told("x.md"), told("x.md")]));
});

test("notices at the bottom: one that stands above, and old bytes that changed, are seen", () => {
  holds(claims.noticesAtBottom("bottom", [first, second], ["t2"]));
  const above = body("I am Ada.", [textBlock("notice", "up here"), reply, hello], "t2");
  fails(claims.noticesAtBottom("bottom", [first, above], ["t2"]));
  fails(claims.noticesAtBottom("bottom", [first, body("I am Ada.", [hello, reply, hello], "t2")], ["t2"]));
  fails(claims.noticesAtBottom("bottom", [body("I am Eve.", [hello], "t1"), second], ["t2"]));
  fails(claims.noticesAtBottom("bottom", [second], ["t2"]));
});

test("twins: a byte that changed is found where it changed, and a sequence that only grows departs nowhere", () => {
  const bodies = [first, second].map((sent) => sent.body);
  holds(onlyAppends("appends", bodies));
  fails(departsInPrefix("departs", bodies));
  fails(onlyAppends("appends", [first.body]));
  const naive = [first, body("I am Ada.", [hello, reply, hello], "t2", "I am Eve.")].map(naiveBody);
  fails(onlyAppends("appends", naive));
  const claim = departsInPrefix("departs", naive);
  holds(claim);
  const byte = Number(/at byte (\d+):/.exec(claim.shown)?.[1]);
  const [before = "", after = ""] = naive.map((text) =>
    text.replace(/,"cache_control":\{[^}]*\}/g, "").replace(/^\{"model":"m","max_tokens":10,/, ""),
  );
  assert.is(before.slice(0, byte), after.slice(0, byte));
  assert.is.not(before[byte], after[byte]);
  // A message that changed is no prefix that changed.
  fails(departsInPrefix("departs", [second.body, body("I am Ada.", [textBlock("input", "other"), reply, hello], "t2").body]));
});

test("twins: the same persona gives the naive twin the same bytes again, without notices", () => {
  const [one = "", two = ""] = [first, second].map(naiveBody);
  assert.ok(onlyAppends("appends", [one, two]).ok);
  assert.not.match(two, "headfast:notice");
  assert.match(two, "more");
});

test("bills: more fresh, fewer cached tokens, a higher price, or nothing cached at all are seen", () => {
  const usage = { fresh: 0, cacheRead: 0, cacheWrite: 0, output: 0 };
  const bill = (cached: number, fresh: number, costUsd: number): Bill => ({ calls: 3, usage, costUsd, uncachedCostUsd: 1, cached, fresh });
  const naive = bill(100, 900, 0.5);
  holds(cheaper("bills", "m", bill(800, 200, 0.1), naive));
  fails(cheaper("bills", "m", bill(20, 200, 0.1), naive));
  fails(cheaper("bills", "m", { ...bill(800, 200, 0.1), calls: 2 }, naive));
  fails(cheaper("bills", "m", bill(800, 900, 0.1), naive));
  fails(cheaper("bills", "m", bill(800, 200, 0.5), naive));
  fails(cheaper("bills", "m", bill(800, 200, 0.1), bill(0, 900, 0.5)));
});

// ── the command line ─────────────────────────────────────────────────────────────────────────────

test("options: each is read, and what is none is told", () => {
  assert.equal(parseOptions(["--json", "--memory", "dir"]), { json: true, keep: false, help: false, memory: "dir" });
  assert.equal(parseOptions([]), { json: false, keep: false, help: false, memory: null });
  for (const args of [["--fast"], ["--memory"], ["dir"], ["--json=1"]]) assert.type(parseOptions(args), "string");
});

test.run();
