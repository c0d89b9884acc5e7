import { limits } from "../../src/domain/limits.ts";
import { at, heard, intent, note, observation, oddIds, oddText } from "../support/store-records.ts";
import { assert, type Suite } from "../support/suite.ts";
import { codeOf, type StoreOf, together } from "./store-tools.ts";

/** Notes, observations, states, parts, journal, settings. */
export function smallCases(test: Suite, store: StoreOf): void {
  test("notes: come back as told; one writer has a number", async () => {
    assert.is(await store().notes.insert(note("n", 1)), "inserted");
    assert.is(await store().notes.insert(note("n", 1, { text: "other" })), "duplicate");
    assert.equal(await store().notes.get("n", 1), note("n", 1));
    assert.is(await store().notes.get("n", 2), undefined);
    const told = await together(30, (n) => store().notes.insert(note("n", 2, { writer: `w${n}` })));
    assert.is(told.filter((one) => one === "inserted").length, 1);
    assert.is((await store().notes.get("n", 2))?.writer, `w${told.indexOf("inserted")}`);
    assert.is(await codeOf(store().notes.insert(note("", 1))), "invalid_id");
  });

  test("B9 notes of strange sessions stay distinct", async () => {
    for (const id of oddIds) assert.is(await store().notes.insert(note(id, 1, { text: id })), "inserted");
    for (const id of oddIds) assert.is((await store().notes.get(id, 1))?.text, id);
  });

  test("observation: the first baseline of an owner epoch stands, however many race", async () => {
    assert.is(await store().observations.get("o"), undefined);
    const told = await together(30, (n) => store().observations.baseline("o", "ada", 0, heard(`s${n}`), at));
    for (const one of told) assert.equal(one, told[0]);
    assert.equal(await store().observations.get("o"), told[0]);
    assert.equal(told[0], observation("o", { baseline: heard(told[0]?.baseline?.state ?? "") }));
  });

  test("observation: a later owner's baseline replaces all; an earlier one's does nothing", async () => {
    await store().observations.baseline("p", "ada", 0, heard("a"), at);
    await store().observations.project("p", 0, { from: "a", to: "b", text: oddText }, "later");
    assert.equal(
      await store().observations.get("p"),
      observation("p", { baseline: heard("a"), pending: { from: "a", to: "b", text: oddText }, lookedAt: "later" }),
    );
    const bea = observation("p", { bot: "bea", baseline: heard("c"), baselineEpoch: 2, lookedAt: "again" });
    assert.equal(await store().observations.baseline("p", "bea", 2, heard("c"), "again"), bea);
    assert.equal(await store().observations.baseline("p", "cyd", 1, heard("d"), "no"), bea);
    await store().observations.project("p", 0, { from: "a", to: "b", text: "late" }, "no");
    assert.equal(await store().observations.get("p"), bea);
  });

  test("observation: project replaces and takes off, and creates nothing", async () => {
    await store().observations.project("q", 0, { from: "a", to: "b", text: "t" }, at);
    assert.is(await store().observations.get("q"), undefined);
    await store().observations.baseline("q", "ada", 0, { state: "s", branch: null, head: null }, at);
    await store().observations.project("q", 0, { from: "a", to: "b", text: "t" }, "1");
    await store().observations.project("q", 0, null, "2");
    assert.equal(
      await store().observations.get("q"),
      observation("q", { baseline: { state: "s", branch: null, head: null }, lookedAt: "2" }),
    );
    assert.is(await codeOf(store().observations.baseline("q2", "", 0, heard("a"), at)), "invalid_id");
  });

  test("states: manifests come back whole, the large ones too, and twice is harmless", async () => {
    const files = (count: number) =>
      Array.from({ length: count }, (_, n) => ({ path: `folder/${n} ${oddText}`, mode: "100644", blob: n.toString(16).padStart(40, "0") }));
    const sizes = { none: 0, one: 1, full: limits.statePathsPerDocument, more: limits.statePathsPerDocument * 2 + 1 };
    for (const [id, size] of Object.entries(sizes)) {
      await together(2, () => store().states.put(id, files(size)));
      await store().states.put(id, files(size));
    }
    for (const [id, size] of Object.entries(sizes)) assert.equal(await store().states.get(id), files(size));
    assert.is(await store().states.get("nothing"), undefined);
  });

  test("parts: texts come back byte for byte, the empty one too", async () => {
    for (const [hash, text] of [
      ["h1", oddText],
      ["h2", ""],
      ["h3", "x".repeat(200_000)],
    ] as const) {
      await together(3, () => store().parts.put(hash, text));
      assert.is(await store().parts.get(hash), text);
    }
    assert.is(await store().parts.get("h4"), undefined);
  });

  test("journal: one intent for each write of a call, told apart whatever the ids", async () => {
    assert.is(await store().journal.insert(intent("j", "c", 0)), "inserted");
    assert.is(await store().journal.insert(intent("j", "c", 0, { after: "other" })), "duplicate");
    assert.is(await store().journal.insert(intent("j", "c", 1, { before: "x", after: null })), "inserted");
    for (const [session, call] of [
      ['j","c', "c"],
      ["j", 'c",0'],
      ["j,c", "c"],
      ["j", "c,0"],
    ] as const) {
      assert.is(await store().journal.insert(intent(session, call, 0, { path: `${session}|${call}` })), "inserted");
      assert.is((await store().journal.get(session, call, 0))?.path, `${session}|${call}`);
    }
    assert.equal(await store().journal.get("j", "c", 0), intent("j", "c", 0));
    assert.is(await store().journal.get("j", "c", 2), undefined);
    assert.equal(await store().journal.ofCall("j", "c"), [intent("j", "c", 0), intent("j", "c", 1, { before: "x", after: null })]);
    assert.equal(await store().journal.ofCall("j", "none"), []);
    assert.is(await codeOf(store().journal.insert(intent("", "c", 0))), "invalid_id");
  });

  test("journal: all writes of a call, over batches, in order", async () => {
    const all = limits.logBatchMax + 3;
    for (let index = all - 1; index >= 0; index -= 1) await store().journal.insert(intent("j2", "c", index));
    assert.equal(
      (await store().journal.ofCall("j2", "c")).map((one) => one.index),
      Array.from({ length: all }, (_, n) => n),
    );
  });

  test("settings: the first value stands for all", async () => {
    const told = await together(30, (n) => store().settings.once("shards", String(n)));
    assert.is(new Set(told).size, 1);
    assert.is(await store().settings.once("shards", "other"), told[0]);
    assert.is(await store().settings.once("__proto__", ""), "");
    assert.is(await store().settings.once("__proto__", "x"), "");
  });
}
