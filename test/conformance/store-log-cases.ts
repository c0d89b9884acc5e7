import { limits } from "../../src/domain/limits.ts";
import { entry, fullEntry, oddIds, oddText } from "../support/store-records.ts";
import { assert, type Suite } from "../support/suite.ts";
import { codeOf, type StoreOf, together } from "./store-tools.ts";

export function logCases(test: Suite, store: StoreOf): void {
  const seqs = async (session: string, from: number, count: number): Promise<number[]> =>
    (await store().log.read(session, from, count)).map((one) => one.seq);

  test("an entry comes back as it was inserted, by seq and by key", async () => {
    for (const one of [entry("least", 1), fullEntry("full", 2)]) {
      assert.is(await store().log.insert(one), "inserted");
      assert.equal(await store().log.get(one.session, one.seq), one);
      assert.equal(await store().log.byKey(one.session, one.entryKey), one);
      assert.equal(await store().log.read(one.session, one.seq, 1), [one]);
    }
    assert.is(await store().log.get("least", 2), undefined);
    assert.is(await store().log.byKey("least", "key 2"), undefined);
  });

  test("C6 I1 what was rendered comes back byte for byte", async () => {
    const rendered = [oddText, "", `${oddText.repeat(500)}`, JSON.stringify({ "$a.b\0": oddText })];
    await store().log.insert(entry("bytes", 1, { rendered }));
    const back = (await store().log.get("bytes", 1))?.rendered ?? [];
    assert.equal(
      back.map((text) => Buffer.from(text).toString("hex")),
      rendered.map((text) => Buffer.from(text).toString("hex")),
    );
  });

  test("any keys inside messages come back unchanged", async () => {
    const strange = JSON.parse(
      '{"role":"user","blocks":[{"type":"input","text":"x","a.b":{"$set":null,"":1,"__proto__":[1.5,-0.1,1e300]},"n\\u0000l":true}]}',
    );
    await store().log.insert(entry("keys", 1, { messages: [strange] }));
    assert.is(JSON.stringify((await store().log.get("keys", 1))?.messages), JSON.stringify([strange]));
  });

  test("a duplicate on either unique key changes nothing", async () => {
    assert.is(await store().log.insert(entry("dup", 1)), "inserted");
    assert.is(await store().log.insert(entry("dup", 1, { entryKey: "other" })), "duplicate");
    assert.is(await store().log.insert(entry("dup", 2, { entryKey: "key 1" })), "duplicate");
    assert.equal(await store().log.get("dup", 1), entry("dup", 1));
    assert.is(await store().log.get("dup", 2), undefined);
    assert.is(await store().log.byKey("dup", "other"), undefined);
    assert.is(await store().log.insert(entry("dup", 2)), "inserted");
    assert.is(await store().log.insert(entry("dup too", 1)), "inserted");
  });

  test("I4 40 writers race for one seq: one has it", async () => {
    const told = await together(40, (n) => store().log.insert(entry("seq", 1, { entryKey: `k${n}`, writer: `w${n}` })));
    assert.is(told.filter((one) => one === "inserted").length, 1);
    assert.is((await store().log.get("seq", 1))?.writer, `w${told.indexOf("inserted")}`);
  });

  test("I4 40 writers race with one entry key for 40 seqs: one has it", async () => {
    const told = await together(40, (n) => store().log.insert(entry("one key", n + 1, { entryKey: "outcome" })));
    assert.is(told.filter((one) => one === "inserted").length, 1);
    assert.is((await store().log.byKey("one key", "outcome"))?.seq, told.indexOf("inserted") + 1);
  });

  test("read: in order, from anywhere, over batches, and up to the first hole", async () => {
    const all = limits.logBatchMax + 5;
    for (let seq = all; seq >= 1; seq -= 1) await store().log.insert(entry("long", seq));
    await store().log.insert(entry("long", all + 2));
    const range = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, n) => from + n);
    assert.equal(await seqs("long", 1, all), range(1, all));
    assert.equal(await seqs("long", 1, all + 50), range(1, all));
    assert.equal(await seqs("long", 3, 4), range(3, 6));
    assert.equal(await seqs("long", all, 10), [all]);
    assert.equal(await seqs("long", all + 1, 10), []);
    assert.equal(await seqs("long", all + 2, 10), [all + 2]);
    assert.equal(await seqs("long", 1, 0), []);
    assert.equal(await seqs("nobody", 1, 10), []);
  });

  test("B9 strange ids stay distinct", async () => {
    for (const [n, id] of oddIds.entries()) {
      assert.is(await store().log.insert(entry(id, 1, { entryKey: "k", why: `as session ${n}` })), "inserted");
      assert.is(await store().log.insert(entry("odd keys", n + 1, { entryKey: id, why: `as key ${n}` })), "inserted");
    }
    for (const [n, id] of oddIds.entries()) {
      assert.is((await store().log.byKey(id, "k"))?.why, `as session ${n}`);
      assert.is((await store().log.byKey("odd keys", id))?.why, `as key ${n}`);
      assert.equal(await seqs(id, 1, 5), [1]);
    }
  });

  test("C4 an entry without a session is refused before it is written", async () => {
    for (const value of [undefined, null, "", 7] as never[]) assert.is(await codeOf(store().log.insert(entry(value, 1))), "invalid_id");
  });
}
