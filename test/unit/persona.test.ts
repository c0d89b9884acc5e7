/** PERSONA.md → the persona: one table of expected bytes (docs/persona.md), and the properties behind it. */
import fc from "fast-check";
import { isHeadfastError } from "../../src/domain/errors.ts";
import { limits } from "../../src/domain/limits.ts";
import { splitPersona } from "../../src/memory/persona.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("persona");

/** What it is, the file, the body, and a word of each warning in order. */
type Row = [what: string, file: string, body: string, ...warnings: string[]];

const table: Row[] = [
  ["LF", "---\npin: 1\n---\nYou are Ada.\n", "You are Ada.\n"],
  ["CRLF", "---\r\npin: 1\r\n---\r\nYou are Ada.\r\n", "You are Ada.\r\n"],
  ["CR", "---\rpin: 1\r---\rYou are Ada.\r", "You are Ada.\r"],
  ["mixed line ends", "---\r\npin: 1\n---\r\nA\nB\r\n", "A\nB\r\n"],
  ["BOM first", "\uFEFF---\npin: 1\n---\nYou are Ada.", "You are Ada."],
  ["BOM without front matter", "\uFEFFYou are Ada.", "You are Ada."],
  ["a second BOM is text", "\uFEFF\uFEFFYou are Ada.", "\uFEFFYou are Ada."],
  ["a second BOM before the fence", "\uFEFF\uFEFF---\npin: 1\n---\nAda", "Ada", "second block"],
  ["no front matter, a rule inside", "You are Ada.\n\n---\nnote: kept\n---\n", "You are Ada.\n\n---\nnote: kept\n---\n"],
  ["a rule inside the body", "---\npin: 1\n---\nA\n---\nB\n", "A\n---\nB\n"],
  ["empty front matter", "---\n---\nAda", "Ada"],
  ["front matter of blank lines", "---\n\n\n---\nAda", "Ada"],
  ["front matter of a comment", "---\n# pinned\n---\nAda", "Ada"],
  ["closing fence at the end of the file", "---\npin: 1\n---", ""],
  ["front matter only", "---\npin: 1\n---\n", ""],
  ["opening fence never closed", "---\npin: 1\nsecret: yaml\n\nYou are Ada.\n", "", "never closed"],
  ["nothing but a fence", "---", "", "never closed"],
  ["four dashes", "----\npin: 1\n----\nAda", "----\npin: 1\n----\nAda"],
  ["four dashes do not close", "---\npin: 1\n----\nx: 2\n---\nAda", "Ada", "not valid YAML"],
  ["an indented fence does not close", "---\npin: |\n  ---\n  b\n---\nAda", "Ada"],
  ["dots close", "---\npin: 1\n...\nAda", "Ada"],
  ["blanks behind the fences", "--- \t\npin: 1\n---  \nAda", "Ada"],
  ["front matter after a blank line", "\npin\n", "\npin\n"],
  ["a fence after a blank line", "\n \n---\npin: 1\n---\nAda", "Ada", "second block"],
  ["a fence after a blank line, around prose", "\n---\nYou are Ada.\n---\nBe kind.", "\n---\nYou are Ada.\n---\nBe kind."],
  ["a rule after a blank line", "\n---\nYou are Ada.", "\n---\nYou are Ada."],
  ["a language behind the fence", "---js\nmodule: { a: 1 }\n---\nAda", "Ada", "second block"],
  ["invalid YAML", "---\npin: [1\n---\nAda", "Ada", "not valid YAML"],
  ["duplicate keys", "---\npin: 1\npin: 2\n---\nAda", "Ada", "not valid YAML"],
  ["front matter that is no mapping", "---\njust text\n---\nAda", "Ada"],
  ["two blocks", "---\npin: 1\n---\n---\nmood: dark\n---\nAda", "Ada", "second block"],
  ["two blocks, the second invalid", "---\npin: 1\n---\n\n---\nmood: [\n---\nAda", "Ada", "not valid YAML", "second block"],
  ["a rule right behind the front matter", "---\npin: 1\n---\n---\nAda", "---\nAda"],
  ["empty file", "", ""],
  ["only a BOM", "\uFEFF", ""],
  ["only white space", " \t\n\n", " \t\n\n"],
  ["NUL", "A\0B", "A\0B", "NUL"],
  ["TOML is not front matter", "+++\na = 1\n+++\nAda", "+++\na = 1\n+++\nAda"],
];

for (const [what, file, body, ...warnings] of table) {
  test(`A9: ${what}`, () => {
    const split = splitPersona(Buffer.from(file));
    assert.is(split.body, body);
    assert.is(split.warnings.length, warnings.length, split.warnings.join("; "));
    for (const [index, word] of warnings.entries()) assert.match(split.warnings[index] ?? "", word);
  });
}

test("A9: bytes that are not UTF-8 become U+FFFD, with a warning", () => {
  const split = splitPersona(Buffer.from([0x41, 0xff, 0xe2, 0x82, 0x42]));
  assert.is(split.body, "A\uFFFD\uFFFDB");
  assert.match(split.warnings[0] ?? "", "not UTF-8");
  assert.equal(splitPersona(Buffer.from("A\uFFFDB")), { body: "A\uFFFDB", warnings: [] });
});

test("A9: a YAML bomb, deep nesting and code are judged, never expanded or run", () => {
  const bomb = [
    "a: &a [x, x, x]",
    ..."bcdefghij".split("").map((name, index) => `${name}: &${name} [*${"abcdefghi"[index]}, *${"abcdefghi"[index]}]`),
  ].join("\n");
  for (const yaml of [bomb, "[".repeat(20_000), "x: !!js/function 'function () { throw 1 }'", "{".repeat(20_000)])
    assert.is(splitPersona(Buffer.from(`---\n${yaml}\n---\nAda`)).body, "Ada");
});

const kept = [
  "\n\nYou are Ada.  ",
  "tab\t",
  "\u00A0nbsp",
  "joined 👩\u200D💻\n\n\n",
  "   \n\t\n",
  "e\u0301",
  "é",
  "a\r\nb\r\n",
  "\u2028",
  "# Ada\n---\nx: 1\n",
];

for (const body of kept) {
  test(`A12: kept byte for byte: ${JSON.stringify(body)}`, () => {
    for (const head of ["", "\uFEFF", "---\npin: 1\n---\n", "\uFEFF---\r\npin: 1\r\n---\r\n"]) {
      const split = splitPersona(Buffer.from(head + body));
      assert.ok(Buffer.from(split.body).equals(Buffer.from(body)), JSON.stringify(split));
      assert.equal(split.warnings, []);
    }
  });
}

test("A12: any text without a fence at its start is the body, behind any front matter", () => {
  const text = fc.string({
    unit: fc.oneof(
      fc.constantFrom("\n", "\r\n", " ", "\t", "-", "---", ":", "\0", "#"),
      fc.string({ unit: "binary", minLength: 1, maxLength: 3 }),
    ),
    maxLength: 30,
  });
  fc.assert(
    fc.property(text, fc.constantFrom("", "---\npin: 1\n---\n", "---\n---\r\n"), (body, head) => {
      fc.pre(body.isWellFormed() && !/^[\s\uFEFF]*---/u.test(body) && !body.startsWith("\uFEFF"));
      assert.is(splitPersona(Buffer.from(head + body)).body, body);
    }),
    { seed: 9, numRuns: 500 },
  );
});

test("A9: no line of a mapping in the front matter reaches the body, wherever the fences stand", () => {
  const ends = fc.constantFrom("\n", "\r\n", "\r");
  const lead = fc.constantFrom("", "\uFEFF", "\n", "\r\n\r\n", " \n");
  fc.assert(
    fc.property(lead, ends, ends, fc.integer({ min: 1, max: 3 }), (before, one, two, blocks) => {
      const block = `---${one}leaked: yes${two}more: [leaked]${one}---${two}`;
      assert.is(splitPersona(Buffer.from(`${before}${block.repeat(blocks)}Ada`)).body, "Ada");
    }),
    { seed: 12, numRuns: 200 },
  );
});

test("a body over the limit is refused with the limit; front matter does not count", () => {
  const body = "é".repeat(limits.personaBytesMax / 2);
  assert.is(splitPersona(Buffer.from(`---\npin: 1\n---\n${body}`)).body, body);
  try {
    splitPersona(Buffer.from(`${body}x`));
    assert.unreachable("the limit was not held");
  } catch (error) {
    assert.ok(isHeadfastError(error, "input_too_large"));
    assert.match((error as Error).message, String(limits.personaBytesMax));
  }
});

test.run();
