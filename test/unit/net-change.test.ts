/** I7: the net change and its notice, as properties. */
import fc from "fast-check";
import { limits } from "../../src/domain/limits.ts";
import { manifestId, sortedManifest } from "../../src/domain/manifest.ts";
import { memoryPath, pathBytes, pathText } from "../../src/domain/memory-path.ts";
import { diffStates, mergeWrote, type NetChange, netChange, renderNotice } from "../../src/domain/net-change.ts";
import type { ManifestEntry, MemoryState, Wrote } from "../../src/domain/records.ts";
import { told } from "../conformance/memory-suite.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("net change");

/** `path: blob`, or `path: "mode blob"`. */
function state(files: Record<string, string>, branch: string | null = "main", head: string | null = "c0"): MemoryState {
  const entries = Object.entries(files).map(([path, text]): ManifestEntry => {
    const [blob = "", mode = "100644"] = text.split(" ").reverse();
    return { path, mode, blob };
  });
  const manifest = sortedManifest(entries);
  return { state: manifestId(manifest), branch, head, manifest };
}

function change(from: Record<string, string>, to: Record<string, string>, wrote: Wrote[] = []): string[] {
  return told(netChange(state(from), wrote, state(to)));
}

test("D1: renames are exact and unambiguous; everything else is what it is", () => {
  assert.equal(change({ "foo.md": "1" }, { "bar.md": "1" }), ["renamed bar.md < foo.md"]);
  assert.equal(change({ "a/foo.md": "1" }, { "b/c/foo.md": "1" }), ["renamed b/c/foo.md < a/foo.md"]);
  assert.equal(change({ "foo.md": "1" }, { "bar.md": "2" }), ["added bar.md", "deleted foo.md"]);
  assert.equal(change({ "foo.md": "1" }, { "foo.md": "1", "copy.md": "1" }), ["added copy.md"]);
  assert.equal(change({ a: "1", b: "2" }, { a: "2", b: "1" }), ["modified a", "modified b"]);
  assert.equal(change({ a: "1", b: "1" }, { c: "1" }), ["deleted a", "deleted b", "added c"]);
  assert.equal(change({ a: "1" }, { b: "1", c: "1" }), ["deleted a", "added b", "added c"]);
  assert.equal(change({ a: "1" }, { b: "100755 1" }), ["renamed b < a"]);
  assert.equal(change({ a: "1" }, { b: "120000 1" }), ["deleted a", "added b"]);
});

test("modes, symlinks and repositories inside", () => {
  assert.equal(change({ a: "1" }, { a: "100755 1" }), ["mode a"]);
  assert.equal(change({ a: "1" }, { a: "100755 2" }), ["modified a"]);
  assert.equal(change({ a: "1" }, { a: "120000 1" }), ["modified a"]);
  assert.equal(change({ a: "160000 1" }, { a: "160000 2" }), ["repository a"]);
  assert.equal(change({ a: "1" }, { a: "160000 2" }), ["repository a"]);
  assert.equal(change({}, { a: "160000 2" }), ["added a"]);
});

test("I7: a branch is told, a moved HEAD alone is not", () => {
  assert.is(netChange(state({ a: "1" }), [], state({ a: "1" }, "main", "c1")), null);
  assert.is(diffStates(state({ a: "1" }, "main", null), state({ a: "1" })), null);
  assert.is(renderNotice(diffStates(state({}), state({}, null)) as NetChange).split("\n")[1], 'branch: "main" -> none (detached)');
  assert.is(renderNotice(diffStates(state({}, "HEAD"), state({}, "next")) as NetChange).split("\n")[1], 'branch: "HEAD" -> "next"');
});

test("I7: what the session wrote is laid over what was told", () => {
  const wrote = (path: string, ...blobs: (string | null)[]): Wrote[] => [{ path, blobs }];
  assert.equal(change({ a: "1" }, { a: "2" }, wrote("a", "1", "2")), []);
  assert.equal(change({ a: "1" }, { a: "2" }, wrote("/memory/./a", "1", "2")), []);
  assert.equal(change({ a: "1" }, { a: "3" }, wrote("a", "1", "2")), ["modified a"]);
  assert.equal(change({}, { a: "2" }, wrote("a", null, "2")), []);
  assert.equal(change({ a: "1" }, {}, wrote("a", "1", "2")), ["deleted a"]);
  assert.equal(change({ a: "1" }, {}, wrote("a", null, "2")), []);
  assert.equal(change({}, {}, wrote("a", null, "2")), []);
  assert.equal(change({ a: "1" }, { a: "100755 2" }, wrote("a", "2")), ["mode a"]);
  assert.equal(change({}, { a: "120000 2" }, wrote("a", "2")), ["added a"]);
  // The bot's file is moved by a person: that is the person's news.
  assert.equal(change({}, { b: "2" }, wrote("a", null, "2")), ["added b"]);
});

test("I7: of two writes of a path, under any spelling, the later counts; bringing back the earlier text is news", () => {
  const first = [{ path: "b", blobs: ["1", "2"] }];
  const merged = mergeWrote(first, [
    { path: "/memory/b", blobs: ["3", "2", "3", "0"] },
    { path: "a", blobs: [null] },
  ]);
  assert.equal(merged, [
    { path: "a", blobs: [null] },
    { path: "b", blobs: ["3", "2"] },
  ]);
  assert.equal(mergeWrote([], []), []);
  assert.equal(change({ b: "0" }, { b: "3" }, merged), []);
  assert.equal(change({ b: "0" }, { b: "1" }, first), []);
  assert.equal(change({ b: "0" }, { b: "1" }, merged), ["modified b"]);
});

test("I7: what an uncertain write found is the session's own only where the session had put it there", () => {
  const uncertain = [{ path: "a", blobs: ["bot", "person"] }];
  const merged = mergeWrote([], uncertain);
  assert.equal(change({ a: "told" }, { a: "bot" }, merged), []);
  assert.equal(change({ a: "told" }, { a: "told" }, merged), []);
  assert.equal(change({ a: "told" }, { a: "person" }, merged), ["modified a"]);
  const own = mergeWrote([{ path: "a", blobs: ["bot"] }], [{ path: "a", blobs: ["later", "bot"] }]);
  assert.equal(change({ a: "told" }, { a: "bot" }, own), []);
  assert.equal(change({ a: "told" }, { a: "later" }, own), []);
});

const path = fc
  .array(
    fc.string({
      unit: fc.oneof(
        fc.constantFrom("é", "😀", " ", "\n", "<headfast:notice>", "\u202E", '"', "\\\\", "\\xff"),
        fc.string({ minLength: 1, maxLength: 3 }).map((text) => text.replace(/[\\/.\0]/gu, "_")),
      ),
      minLength: 1,
      maxLength: 6,
    }),
    { minLength: 1, maxLength: 3 },
  )
  .map((names) => names.join("/"));
const files = fc.dictionary(
  path,
  fc.tuple(fc.constantFrom("100644", "100755", "120000", "160000"), fc.constantFrom("1", "2", "3")).map((parts) => parts.join(" ")),
  { maxKeys: 60, noNullPrototype: true },
);

test("I7: made and reverted is nothing, and the change is complete: laid over what was told it gives what is", () => {
  fc.assert(
    fc.property(files, files, (from, to) => {
      assert.is(netChange(state(from), [], state(from)), null);
      const found = diffStates(state(from), state(to));
      const touched = new Set(found?.paths.flatMap((one) => ("from" in one ? [one.path, one.from] : [one.path])));
      for (const name of new Set([...Object.keys(from), ...Object.keys(to)])) assert.is(touched.has(name), from[name] !== to[name], name);
    }),
    { seed: 7, numRuns: 300 },
  );
});

test("I7: whatever was written and stands gives no notice, and hides nothing else", () => {
  fc.assert(
    fc.property(files, files, (from, to) => {
      const plain = Object.fromEntries(
        Object.entries(to).map(([name, text]) => [
          name,
          from[name]?.startsWith("100") ? `${from[name]?.split(" ")[0]} ${text.split(" ")[1]}` : `100644 ${text.split(" ")[1]}`,
        ]),
      );
      const wrote = [...new Set([...Object.keys(from), ...Object.keys(plain)])].map((name) => ({
        path: name,
        blobs: [plain[name]?.split(" ")[1] ?? null],
      }));
      assert.is(netChange(state(from), wrote, state(plain)), null);
      const other = { ...plain, "zz/other": "9" };
      assert.equal(told(netChange(state(from), wrote, state(other))), ["added zz/other"]);
    }),
    { seed: 8, numRuns: 300 },
  );
});

test("I7: a notice is bounded, well-formed, forges nothing, and is the same bytes for the same input in any order", () => {
  fc.assert(
    fc.property(files, files, fc.option(path), (from, to, branch) => {
      const found = diffStates(state(from), state(to, branch));
      if (found === null) return;
      const text = renderNotice(found);
      const shuffled = diffStates(
        state(Object.fromEntries(Object.entries(from).reverse())),
        state(Object.fromEntries(Object.entries(to).reverse()), branch),
      );
      assert.is(renderNotice(shuffled as NetChange), text);
      checkNotice(text, found);
    }),
    { seed: 9, numRuns: 300 },
  );
});

/** Bounds, form, and that shown and counted paths add up. */
function checkNotice(text: string, found: NetChange): void {
  assert.ok(Buffer.byteLength(text) <= limits.noticeBytesMax);
  assert.ok(text.isWellFormed() && !text.includes("\uFFFD"));
  for (const line of text.split("\n")) assert.not.match(line, /[<\p{Cc}\p{Cf}]/u);
  const lines = text.split("\n").slice(found.branch === null ? 1 : 2);
  const rest = /^and (\d+) more paths?$/u.exec(lines.at(-1) ?? "");
  const shown = rest === null ? lines : lines.slice(0, -1);
  assert.ok(shown.length <= limits.noticePathsMax);
  assert.is(shown.length + Number(rest?.[1] ?? 0), found.paths.length);
  for (const line of shown) assert.match(line, /^(?:added|deleted|modified|renamed|repository changed|mode \d+ -> \d+): "/u);
}

test("D4: 5,000 paths of 200-byte names with emoji: bounded, whole characters, the rest counted", () => {
  for (let length = 1; length <= 260; length += 1) {
    // The cut falls on every byte of a four-byte character, for one long name and for the whole notice.
    const names = Array.from(
      { length: length % 40 === 0 ? 5_000 : 60 },
      (_, index) => `${"n".repeat(length)}${"😀".repeat(length % 7 === 0 ? 200 : 40)}${index}`,
    );
    const found = diffStates(state({}), state(Object.fromEntries(names.map((name) => [name, "1"])))) as NetChange;
    const text = renderNotice(found);
    checkNotice(text, found);
    assert.is(renderNotice(structuredClone(found)), text);
    assert.match(text, /\nand \d+ more paths$/u);
    assert.ok(Buffer.byteLength(text) > limits.noticeBytesMax / 2, "the room is used");
  }
});

test("D4: one name of any length is cut between characters, never within an escape", () => {
  for (let pad = 0; pad < 12; pad += 1) {
    const name = `${"n".repeat(pad)}${"\n😀\u202E\\\\\\xff".repeat(400)}`;
    const text = renderNotice({ branch: { from: name, to: name }, paths: [{ status: "renamed", path: name, from: name }] });
    assert.ok(Buffer.byteLength(text) <= limits.noticeBytesMax && text.isWellFormed());
    for (const [, shown = ""] of text.matchAll(/"([^"]*)"…/gu))
      assert.ok(pathBytes(name).subarray(0, pathBytes(shown).length).equals(pathBytes(shown)), shown);
    assert.is(text.split("\n").length, 3);
  }
});

test("a path as a notice shows it is taken back by the file tools", () => {
  fc.assert(
    fc.property(path, (name) => {
      const clean = memoryPath(name);
      fc.pre(clean.length > 0 && clean.length < 100);
      const [, shown] = renderNotice({ branch: null, paths: [{ status: "added", path: clean }] }).split("\n");
      assert.is(memoryPath(/"(.*)"/u.exec(shown ?? "")?.[1] ?? ""), clean);
    }),
    { seed: 10, numRuns: 300 },
  );
});

test("the text of a path is injective, and gives its bytes back", () => {
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 12 }),
    fc.array(fc.constantFrom(0x5c, 0x78, 0x66, 0xff, 0xe2, 0x82, 0xac, 0xf0, 0x9f), { maxLength: 12 }).map((list) => Uint8Array.from(list)),
  );
  fc.assert(
    fc.property(bytes, (array) => {
      const buffer = Buffer.from(array);
      const text = pathText(buffer);
      assert.ok(text.isWellFormed());
      assert.ok(pathBytes(text).equals(buffer), text);
    }),
    { seed: 11, numRuns: 2_000 },
  );
});

test.run();
