/** Cases of other projects that concern the store: missing owners, broken text, edited documents, sizes. */
import { BSON } from "mongodb";
import { limits } from "../../src/domain/limits.ts";
import type { Message } from "../../src/domain/messages.ts";
import type { Stored } from "../../src/store/mapping.ts";
import { type MongoStore, openMongoStore } from "../../src/store/store.ts";
import { realSystem } from "../../src/system.ts";
import { dropDatabase, inDatabase, opened, silent, withClient } from "../support/mongo.ts";
import { refusal } from "../support/refusal.ts";
import { mongoUrl, uniqueName } from "../support/services.ts";
import { at, entry, frozen, fullEntry, intent, oddText, ownership, turn } from "../support/store-records.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("cases of the store", { timeoutMs: 60_000 });
const database = uniqueName("cases");
let store: MongoStore;

test.before(async () => {
  store = await openMongoStore({ url: mongoUrl(), database, system: realSystem, log: silent });
});
test.after(async () => {
  await store.close();
  await dropDatabase(database);
});

// ── C4, C6 ───────────────────────────────────────────────────────────────────────────────────────

test("C4 bad owners are refused before any write, with ignoreUndefined both ways; a good claim works afterwards", async () => {
  for (const ignoreUndefined of [true, false]) {
    await withClient(mongoUrl(), { ignoreUndefined }, (client) =>
      opened({ client, database }, async (own) => {
        for (const bad of [undefined, null, "", undefined, null, ""] as never[]) {
          assert.is((await refusal(own.ownership.claim(ownership("c4", { bot: bad })))).code, "invalid_id");
          assert.is((await refusal(own.ownership.claim(ownership(bad)))).code, "invalid_id");
          assert.is((await refusal(own.turns.insert(turn("c4", 1, { bot: bad })))).code, "invalid_id");
        }
        await inDatabase(database, async (db) => {
          for (const name of ["session_ownership", "turns"]) {
            assert.is(await db.collection(name).countDocuments({ bot_id: null }), 0);
            assert.is(await db.collection<{ _id: string | null }>(name).countDocuments({ _id: { $in: ["c4", "", null] } }), 0);
          }
        });
        assert.is((await own.ownership.claim(ownership(`c4 ${ignoreUndefined}`))).bot, "ada");
      }),
    );
  }
});

test("C6 text that the driver would replace is refused; what is stored comes back byte for byte", async () => {
  for (const broken of ["high \ud800", "\udc00 low"]) {
    const refusals = [
      store.turns.insert(turn("c6", 1, { input: broken })),
      store.log.insert(entry("c6", 1, { rendered: [broken] })),
      store.parts.put("c6", broken),
      store.ownership.freeze("c6", { bot: "ada", ownerEpoch: 0, from: null }, { ...frozen, personaSnapshot: broken }),
      store.observations.project("c6", 0, { from: "a", to: "b", text: broken }, at),
      store.journal.insert(intent("c6", "c", 0, { path: broken })),
    ];
    for (const one of await Promise.allSettled(refusals)) assert.is(one.status === "rejected" && one.reason.code, "document_invalid");
    assert.is(await store.turns.byNumber("c6", 1), undefined);
  }
  await store.turns.insert(turn("c6", 1, { input: oddText }));
  assert.is(Buffer.from((await store.turns.byNumber("c6", 1))?.input ?? "").compare(Buffer.from(oddText)), 0);
});

// ── A6: documents that somebody edited ───────────────────────────────────────────────────────────

/** An owned session as it is stored. */
const mine = { v: 1, bot_id: "ada", role: "r", owner_epoch: 0, last_number: 0, last_seq: 0, active_at: 0, created_at: at };

async function edited(session: string, fields: Record<string, unknown>): Promise<void> {
  await inDatabase(database, (db) => db.collection<Stored>("session_ownership").insertOne({ ...mine, _id: session, ...fields }));
}

test("A6 I6 a missing snapshot is not taken, an empty one is one, anything else is a named error and stays as it is", async () => {
  await edited("a6 missing", {});
  assert.is("personaSnapshot" in ((await store.ownership.get("a6 missing")) ?? {}), false);
  await edited("a6 empty", { persona_snapshot: "" });
  assert.is((await store.ownership.get("a6 empty"))?.personaSnapshot, "");

  for (const [n, value] of [null, 7, ["p"], { p: 1 }, true].entries()) {
    await edited(`a6 ${n}`, { persona_snapshot: value });
    const error = await refusal(store.ownership.get(`a6 ${n}`));
    assert.equal(
      [error.code, error.data],
      ["document_invalid", { collection: "session_ownership", _id: `a6 ${n}`, field: "persona_snapshot" }],
    );
    await store.ownership.freeze(`a6 ${n}`, { bot: "ada", ownerEpoch: 0, from: null }, frozen);
    const stored = await inDatabase(database, (db) => db.collection<Stored>("session_ownership").findOne({ _id: `a6 ${n}` }));
    assert.equal(stored?.persona_snapshot, value, "rebuilt in silence");
    assert.is((await refusal(store.ownership.claim(ownership(`a6 ${n}`)))).code, "document_invalid");
  }
});

test("A6 I5 a bot that is null, missing or no text is a named error, and nobody's claim", async () => {
  for (const [n, bot_id] of [null, undefined, 7, []].entries()) {
    await edited(`a6 bot ${n}`, { bot_id });
    if (bot_id === undefined)
      await inDatabase(database, (db) =>
        db.collection<Stored>("session_ownership").updateOne({ _id: `a6 bot ${n}` }, { $unset: { bot_id: "" } }),
      );
    for (const call of [store.ownership.get(`a6 bot ${n}`), store.ownership.claim(ownership(`a6 bot ${n}`))]) {
      const error = await refusal(call);
      assert.equal([error.code, error.data.field], ["document_invalid", "bot_id"]);
    }
  }
});

test("A6 rule 19: a document of a newer release is ahead, whatever its fields are", async () => {
  await edited("a6 newer", { v: 2, bot_id: { name: "ada" } });
  const error = await refusal(store.ownership.get("a6 newer"));
  assert.equal([error.code, error.kind], ["version_ahead", "later"]);
});

test("A6 nested fields are named by their path", async () => {
  await store.log.insert(fullEntry("a6", 1));
  const edits: Record<string, unknown> = {
    "checkpoint.through": "4",
    messages: "{",
    "checkpoint.heard.state": null,
    rendered: ["a", 1],
    kind: "other",
    "usage.fresh": "1",
  };
  for (const [field, value] of Object.entries(edits)) {
    const before = await inDatabase(database, (db) =>
      db.collection<Stored>("transcript").findOneAndUpdate({ _id: "a6#1" }, { $set: { [field]: value } }),
    );
    const error = await refusal(store.log.get("a6", 1));
    assert.equal([error.code, error.data.field], ["document_invalid", field]);
    await inDatabase(database, (db) => db.collection<Stored>("transcript").replaceOne({ _id: "a6#1" }, before ?? {}));
  }
  assert.equal(await store.log.get("a6", 1), fullEntry("a6", 1));
});

// ── C7: sizes ────────────────────────────────────────────────────────────────────────────────────

test("C7 a document that MongoDB would not take is refused before it is sent, and disturbs nobody", async () => {
  for (const bytes of [16.5, 17, 18, 60].map((mega) => mega * 1024 * 1024)) {
    const [error] = await Promise.all([
      refusal(store.turns.insert(turn("c7", 1, { input: "x".repeat(bytes) }))),
      store.turns.byNumber("c7", 1),
    ]);
    assert.equal([error.code, error.kind], ["input_too_large", "terminal"]);
    assert.match(error.message, String(limits.documentBytesMax));
  }
  assert.is(await store.turns.byNumber("c7", 1), undefined);
});

test("C7 the largest step that the limits allow fits in a document, and comes back", async () => {
  const text = "x".repeat(limits.toolResultBytesMax);
  const messages: Message[] = [
    { role: "tool", results: Array.from({ length: limits.toolCallsPerStepMax }, (_, n) => ({ id: `c${n}`, text, isError: false })) },
    { role: "assistant", text: "y".repeat(limits.replyBytesMax), toolCalls: [] },
  ];
  const largest = entry("c7 step", 1, { messages, rendered: messages.map((message) => JSON.stringify(message)) });
  assert.is(await store.log.insert(largest), "inserted");
  assert.equal(await store.log.get("c7 step", 1), largest);
});

test("C7 the ownership document stays below 64 KB plus its persona; a turn's attempts are bounded", async () => {
  const id = "i".repeat(limits.idBytesMax);
  const persona = "p".repeat(limits.personaBytesMax);
  await store.ownership.claim(ownership(id, { bot: "b".repeat(limits.botNameBytesMax), parent: id }));
  await store.ownership.freeze(
    id,
    { bot: "b".repeat(limits.botNameBytesMax), ownerEpoch: 0, from: null },
    { ...frozen, personaSnapshot: persona },
  );
  const error = { code: "model_failed", message: "m".repeat(limits.errorBytesMax), stack: "s".repeat(limits.errorBytesMax) };
  await store.turns.insert(turn("c7 attempts", 1));
  for (let number = 1; number <= 30; number += 1)
    await store.turns.addAttempt("c7 attempts", 1, { number, worker: "w", startedAt: at, endedAt: at, error }, null);
  await inDatabase(database, async (db) => {
    const owner = await db.collection<Stored>("session_ownership").findOne({ _id: id });
    const dead = await db.collection<Stored>("turns").findOne({ _id: "c7 attempts#1" });
    assert.ok(BSON.calculateObjectSize(owner ?? {}) < 64 * 1024 + limits.personaBytesMax);
    assert.ok(BSON.calculateObjectSize(dead ?? {}) < (limits.attemptsKeptMax + 1) * 2 * limits.errorBytesMax);
  });
});

test.run();
