import { tellFailure } from "../../src/cli/failure.ts";
import type { Io } from "../../src/cli/io.ts";
import { Output, shown, shownIndented, shownLines, snake, table } from "../../src/cli/output.ts";
import { redacted } from "../../src/cli/redact.ts";
import { HeadfastError } from "../../src/domain/errors.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("cli output");

function io(env: Record<string, string> = {}): { io: Io; out: string[]; err: string[] } {
  const out: string[] = [];
  const err: string[] = [];
  const sink = (lines: string[]) => ({ isTTY: false, write: (text: string) => lines.push(text) }) as unknown as NodeJS.WriteStream;
  return { io: { stdin: process.stdin, stdout: sink(out), stderr: sink(err), env, cwd: "." }, out, err };
}

test("passwords go from every URL, whatever they hold", () => {
  assert.is(redacted("redis://:s3cret@host:6379/0 is away"), "redis://***@host:6379/0 is away");
  assert.is(redacted('{"url":"mongodb+srv://ada:p%40ss@h1,h2/db?x=1"}'), '{"url":"mongodb+srv://***@h1,h2/db?x=1"}');
  assert.is(redacted("rediss://u:p@ss@host"), "rediss://***@host");
  assert.is(redacted("two: redis://:a@h mongodb://u:b@k"), "two: redis://***@h mongodb://***@k");
  assert.is(redacted("https://x.example/?token=abc&y=1"), "https://x.example/?token=***&y=1");
  assert.is(redacted("redis://h?password=abc"), "redis://h?password=***");
  for (const harmless of ["redis://127.0.0.1:6379", "mail ada@example.org", "tg:42/@ada"]) assert.is(redacted(harmless), harmless);
});

test("keys become snake_case, texts stay", () => {
  assert.equal(snake({ turnId: "aB", list: [{ waitingBehind: 1 }], none: null }), {
    turn_id: "aB",
    list: [{ waiting_behind: 1 }],
    none: null,
  });
});

test("foreign text moves no cursor and hides nothing", () => {
  assert.is(shown("a\u001b[2Jb\nc\u202ed"), "a\\u{1b}[2Jb\\u{a}c\\u{202e}d");
  assert.is(shownLines("a\n\tb\u001b[2J\r"), "a\n\tb\\u{1b}[2J\\u{d}");
  assert.is(table(["A", "B"], [["x\ny", "1"]]), "A        B\nx\\u{a}y  1");
});

test("foreign text of several lines stands indented behind its label", () => {
  assert.is(shownIndented("  Bo: ", "one\n#2 step\r\n\u001b[2K", "    "), "  Bo: one\n    #2 step\\u{d}\n    \\u{1b}[2K");
});

test("with --json one value on stdout and no remark, without it text and remarks apart", () => {
  const quiet = io();
  const json = new Output(quiet.io, true);
  json.remark("a remark");
  json.answer({ turnId: "t" }, () => "text");
  assert.equal([quiet.out, quiet.err], [['{"turn_id":"t"}\n'], []]);
  const plain = io();
  const text = new Output(plain.io, false);
  text.remark("at redis://:pw@h");
  text.answer({ turnId: "t" }, () => "text");
  assert.equal([plain.out, plain.err], [["text\n"], ["at redis://***@h\n"]]);
});

test("an error is one line without a stack, or one object; its code gives the exit code", () => {
  const failure = new HeadfastError("session_not_found", "no session\n at redis://:pw@h", {
    data: { turnId: "t" },
    cause: new Error("mongodb://u:pw@h"),
  });
  const text = io();
  assert.is(tellFailure(failure, text.io, false), 3);
  assert.equal([text.out, text.err], [[], ["headfast: session_not_found: no session at redis://***@h\n"]]);
  const json = io();
  assert.is(tellFailure(failure, json.io, true), 3);
  assert.equal(JSON.parse(json.out.join("")), {
    error: { code: "session_not_found", message: "no session\n at redis://***@h", retryable: false, data: { turn_id: "t" } },
  });
  assert.equal(json.err, []);
  assert.is(tellFailure(new HeadfastError("invalid_id", "x"), io().io, false), 2);
  assert.is(tellFailure(new HeadfastError("configuration", "x"), io().io, false), 2);
  assert.is(tellFailure(new HeadfastError("store_unavailable", "x"), io().io, false), 1);
  assert.is(tellFailure(new TypeError("x"), io().io, false), 1);
});

test("HEADFAST_DEBUG=1 adds the stacks, without secrets", () => {
  const debug = io({ HEADFAST_DEBUG: "1" });
  tellFailure(new HeadfastError("unexpected", "outer", { cause: new Error("inner mongodb://u:pw@h") }), debug.io, false);
  const said = debug.err.join("");
  assert.match(said, "caused by: Error: inner mongodb://***@h\n    at ");
  assert.not.match(said, "pw");
});

test.run();
