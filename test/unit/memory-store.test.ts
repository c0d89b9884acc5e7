/** What the in-memory store models of a replica set; that it is a `Store` is the conformance suite's business. */
import { memoryStore, type OperationMode } from "../../src/testing/memory-store.ts";
import { entry, note, ownership, turn } from "../support/store-records.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("the in-memory store's fail-over");

async function codeOf(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => "resolved",
    (error: { code: string }) => error.code,
  );
}

test("each mode fails as it says, once, for a write and for a read", async () => {
  const applied: Record<OperationMode, boolean> = { ack: true, fail_before: false, lose_answer: true, tentative: false };
  for (const [mode, visible] of Object.entries(applied) as [OperationMode, boolean][]) {
    const store = memoryStore();
    store.mode = mode;
    assert.is(await codeOf(store.notes.insert(note("s", 1))), mode === "ack" ? "resolved" : "store_unavailable");
    assert.is(store.mode, "ack");
    assert.is((await store.notes.get("s", 1)) !== undefined, visible, mode);
    store.mode = mode;
    assert.is(await codeOf(store.notes.get("s", 1)), mode === "ack" ? "resolved" : "store_unavailable");
    assert.is(store.contents().notes.length, visible ? 1 : 0);
  }
});

test("the effect stands before anything is awaited", async () => {
  const store = memoryStore();
  const first = store.turns.insert(turn("s", 1));
  assert.is(store.contents().turns.length, 1);
  const second = store.turns.insert(turn("s", 1, { turnId: "other" }));
  assert.equal(await Promise.all([first, second]), ["inserted", "duplicate"]);
});

test("a tentative insert collides on both unique keys, is read by nobody, and vanishes with the primary", async () => {
  const store = memoryStore();
  store.mode = "tentative";
  await codeOf(store.turns.insert(turn("s", 1)));
  assert.is(await store.turns.insert(turn("s", 1, { turnId: "other" })), "duplicate");
  assert.is(await store.turns.insert(turn("s", 2, { turnId: "turn 1" })), "duplicate");
  assert.is(await store.turns.byNumber("s", 1), undefined);
  assert.is(await store.turns.byId("s", "turn 1", 0), undefined);
  store.failover();
  assert.is(await store.turns.insert(turn("s", 2, { turnId: "turn 1" })), "inserted");
  assert.is(await store.turns.insert(turn("s", 1, { turnId: "other" })), "inserted");
});

test("a tentative update is rolled back to what the majority had, however many there were", async () => {
  const store = memoryStore();
  await store.turns.insert(turn("s", 1));
  for (const dueAt of [1, 2]) {
    store.mode = "tentative";
    await codeOf(store.turns.setDue("s", 1, dueAt));
  }
  assert.is((await store.turns.byNumber("s", 1))?.dueAt, null);
  store.failover();
  await store.turns.setStartMark("s", 1, "w");
  assert.equal(await store.turns.byNumber("s", 1), turn("s", 1, { startMark: "w" }));
});

test("an acknowledged write gives all earlier ones their majority; so does replication", async () => {
  for (const commit of [
    (store: ReturnType<typeof memoryStore>) => store.notes.insert(note("other", 1)),
    async (store: ReturnType<typeof memoryStore>) => store.commitAll(),
  ]) {
    const store = memoryStore();
    store.mode = "tentative";
    await codeOf(store.log.insert(entry("s", 1)));
    assert.is(await store.log.get("s", 1), undefined);
    await commit(store);
    store.failover();
    assert.equal(await store.log.byKey("s", "key 1"), entry("s", 1));
  }
});

test("a write that changed nothing gives nothing a majority", async () => {
  const store = memoryStore();
  store.mode = "tentative";
  await codeOf(store.log.insert(entry("s", 1)));
  await store.log.insert(entry("s", 1));
  await store.turns.setDue("s", 1, 5);
  store.failover();
  assert.is(await store.log.get("s", 1), undefined);
});

test("a claim that meets a tentative one answers only what has a majority", async () => {
  const store = memoryStore();
  store.mode = "tentative";
  await codeOf(store.ownership.claim(ownership("s", { bot: "rival" })));
  assert.is((await store.ownership.claim(ownership("s"))).bot, "rival");
  store.failover();
  assert.is((await store.ownership.get("s"))?.bot, "rival");
});

test("a claim answers what stood when it was made, not what came after", async () => {
  const store = memoryStore();
  const claim = store.ownership.claim(ownership("s"));
  store.mode = "tentative";
  const later = codeOf(store.ownership.rollForward("s", { bot: "rival", ownerEpoch: 1 }));
  assert.is((await claim).bot, "ada");
  await later;
});

test("what it gives out cannot be changed, and what it was given is copied", async () => {
  const store = memoryStore();
  const given = turn("s", 1, { attempts: [] });
  await store.turns.insert(given);
  given.input = "changed";
  const got = await store.turns.byNumber("s", 1);
  assert.is(got?.input, "hello");
  assert.throws(() => Object.assign(got ?? {}, { input: "changed" }), /read only/);
});

test("a closed store refuses", async () => {
  const store = memoryStore();
  await store.close();
  assert.is(await codeOf(store.settings.once("a", "b")), "closed");
});

test.run();
