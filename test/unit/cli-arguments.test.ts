import fc from "fast-check";
import { parse } from "../../src/cli/arguments.ts";
import type { Command } from "../../src/cli/command.ts";
import { commands } from "../../src/cli/program.ts";
import { UsageError } from "../../src/cli/usage.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("cli arguments");

function parsed(...argv: string[]): {
  command: Command;
  args: string[];
  options: { text(name: string): string | undefined; flag(name: string): boolean };
} {
  const found = parse(argv, commands);
  if (!("command" in found)) throw new Error(`parsed as ${JSON.stringify(found)}`);
  return found;
}

function refused(...argv: string[]): string {
  try {
    parse(argv, commands);
  } catch (error) {
    assert.instance(error, UsageError);
    return (error as UsageError).message;
  }
  throw new Error(`${argv.join(" ")} should have been refused`);
}

test("noun and verb, options before, between and behind", () => {
  const { command, args, options } = parsed("--json", "turn", "--namespace", "n", "show", "s", "t", "--generation=2");
  assert.is(command.name, "turn show");
  assert.equal(args, ["s", "t"]);
  assert.ok(options.flag("json"));
  assert.is(options.text("namespace"), "n");
  assert.is(options.text("generation"), "2");
});

test("ids stay the text they are, as words and as values", () => {
  for (const id of ["-100123", "007", "1e3", "0x10", "1.50", "true", "", "a b", "日本", "__proto__", "a.b", "no-x", "x=y"]) {
    if (id !== "") assert.equal(parsed("session", "show", id).args, [id]);
    assert.is(parsed("dead-letter", "ls", "--session", id).options.text("session"), id, JSON.stringify(id));
    assert.is(parsed("dead-letter", "ls", `--session=${id}`).options.text("session"), id, JSON.stringify(id));
  }
  assert.equal(parsed("inbox", "post", "s", "--", "--json").args, ["s", "--json"]);
});

test("any text behind an equals sign comes out as it went in", () => {
  const text = fc.string({ unit: "binary" }).filter((value) => !value.includes("\u0001"));
  fc.assert(
    fc.property(text, text, (session, note) => {
      const { args, options } = parsed("inbox", "post", `--namespace=${session}`, "--", session, note);
      assert.equal(args, [session, note]);
      assert.is(options.text("namespace"), session);
    }),
    { seed: 3, numRuns: 300 },
  );
});

test("what no command has is refused, with what may have been meant", () => {
  assert.match(refused("sesion", "ls"), "did you mean session?");
  assert.match(refused("frobnicate"), "headfast --help lists them");
  assert.match(refused("session", "lss"), "did you mean ls?");
  assert.match(refused("session"), "needs a verb: ls, show, reown, verify, transcript");
  assert.match(refused("session", "ls", "--bott", "a"), "did you mean --bot?");
  assert.match(refused("session", "ls", "--to", "a"), "session ls has no option --to");
  assert.match(refused("session", "show"), "missing required args");
  assert.match(refused("session", "show", "a", "b"), "Unused args: `b`");
  assert.match(refused("session", "ls", "--bot"), "--bot needs a value");
  assert.match(refused("session", "ls", "--bot", "--json"), "--bot=--json");
  assert.match(refused("session", "ls", "--json=yes"), "--json takes no value");
  assert.match(refused(), "no command");
});

test("an option given twice, and one that is no number, are refused when they are read", () => {
  const twice = parse(["session", "ls", "--bot", "a", "--bot", "b"], commands);
  assert.throws(() => "options" in twice && twice.options.text("bot"), /--bot was given 2 times/);
  for (const value of ["x", "1.5", "0", "1001", "", "1e2"]) {
    const given = parse(["session", "ls", `--limit=${value}`], commands);
    assert.throws(() => "options" in given && given.options.whole("limit", { min: 1, max: 1000 }), /must be a whole number from 1 to 1000/);
  }
});

test("help is there for the whole, for a noun and for every command, with an example that parses", () => {
  const whole = parse(["--help"], commands);
  for (const command of commands) {
    assert.match("help" in whole ? whole.help : "", `headfast ${command.name}`);
    const help = parse([...command.name.split(" "), "--help"], commands);
    assert.match("help" in help ? help.help : "", "Examples:");
    for (const example of command.examples) assert.is(parsed(...wordsOf(example)).command.name, command.name);
  }
  const noun = parse(["dead-letter", "-h"], commands);
  assert.match("help" in noun ? noun.help : "", "headfast dead-letter replay <session> <turn>");
  assert.not.match("help" in noun ? noun.help : "", "headfast session");
});

/** The words of an example as a shell gives them to `headfast`: up to a pipe, without quotes. */
function wordsOf(example: string): string[] {
  const call = /headfast ((?:"[^"]*"|'[^']*'|[^|"'])*)/.exec(example.replace(/^echo .*?\| /, ""))?.[1] ?? "";
  return [...call.trim().matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map((match) => match[1] ?? match[2] ?? match[3] ?? "");
}

test("only what is due is there", () => {
  const names = commands.map(({ name }) => name).sort();
  assert.equal(names, [
    "chat",
    "dead-letter discard",
    "dead-letter ls",
    "dead-letter replay",
    "dead-letter show",
    "doctor",
    "inbox ls",
    "inbox post",
    "memory diff",
    "memory observe",
    "prefix show",
    "session ls",
    "session reown",
    "session show",
    "session transcript",
    "session verify",
    "turn cancel",
    "turn show",
    "turn wait",
    "worker",
  ]);
});

test.run();
