/** Calls that share a command: each ends as it would alone, whatever happens to the others. */
import type { CommandStartedEvent } from "mongodb";
import { limits } from "../../src/domain/limits.ts";
import { Documents, type Shape } from "../../src/store/documents.ts";
import { type Codec, text } from "../../src/store/mapping.ts";
import type { MongoStore } from "../../src/store/store.ts";
import { realSystem } from "../../src/system.ts";
import { inDatabase, opened, silent, withClient } from "../support/mongo.ts";
import { type MongoProxy, mongoProxy } from "../support/mongo-proxy.ts";
import { refusal } from "../support/refusal.ts";
import { mongoUrl } from "../support/services.ts";
import { note, ownership, turn } from "../support/store-records.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("calls that share a command", { timeoutMs: 60_000 });

const numbers = (count: number): number[] => Array.from({ length: count }, (_, n) => n + 1);

/** Answers, or the codes of what was refused. */
async function ends(calls: Promise<unknown>[]): Promise<unknown[]> {
  return (await Promise.allSettled(calls)).map((end) => (end.status === "fulfilled" ? end.value : end.reason.code));
}

/** A store whose commands are noted: how many documents, keys or updates each had. */
async function watched(work: (own: MongoStore, sizes: (command: string) => number[], database: string) => Promise<void>): Promise<void> {
  const events: CommandStartedEvent[] = [];
  const sizes = (name: string): number[] =>
    events
      .filter((event) => event.commandName === name)
      .map(({ command }) => (command.documents ?? command.updates ?? command.filter?._id?.$in ?? [0]).length);
  await withClient(mongoUrl(), { monitorCommands: true }, (client) =>
    opened({ client }, (own, database) => {
      client.on("commandStarted", (event) => void events.push(event));
      return work(own, sizes, database);
    }),
  );
}

async function proxied(work: (own: MongoStore, proxy: MongoProxy) => Promise<void>): Promise<void> {
  const proxy = await mongoProxy(mongoUrl());
  try {
    await withClient(proxy.url, { retryWrites: false, retryReads: false }, (client) => opened({ client }, (own) => work(own, proxy)));
  } finally {
    await proxy.close();
  }
}

test("a duplicate in the middle leaves the others inserted, all in one command", () =>
  watched(async (own, sizes) => {
    await own.turns.insert(turn("s", 3));
    await own.turns.insert(turn("s", 99, { turnId: "turn 4" }));
    const told = await ends([1, 2, 3, 4, 5].map((n) => own.turns.insert(turn("s", n, { writer: "second" }))));
    assert.equal(told, ["inserted", "inserted", "duplicate", "duplicate", "inserted"]);
    assert.equal(sizes("insert"), [1, 1, 5]);
    const found = await Promise.all([1, 2, 3, 4, 5].map((n) => own.turns.byNumber("s", n)));
    assert.equal(
      found.map((one) => one?.writer),
      ["second", "second", "writer 3", undefined, "second"],
    );
    assert.equal(sizes("find"), [5]);
  }));

test("I5 claims of many sessions in one command: each is told its own owner, rivals included", () =>
  watched(async (own, sizes) => {
    await own.ownership.claim(ownership("s2", { bot: "bea" }));
    const claims = ["s1", "s2", "s3", "s1"].map((session, n) =>
      own.ownership.claim(ownership(session, { bot: n === 3 ? "rival" : "ada" })),
    );
    assert.equal(
      (await Promise.all(claims)).map((one) => `${one.session} ${one.bot}`),
      ["s1 ada", "s2 bea", "s3 ada", "s1 ada"],
    );
    assert.equal(sizes("update"), [1, 4]);
  }));

test("after a lost answer, and a lost call, all of the command are unknown; the same calls again end as if nothing had been lost", () =>
  proxied(async (own, proxy) => {
    for (const cut of ["answer", "before"] as const) {
      const insert = (): Promise<unknown>[] => numbers(5).map((n) => own.turns.insert(turn(cut, n)));
      let done = proxy.cutNext("insert", "turns", cut);
      assert.equal(await ends(insert()), Array(5).fill("store_unavailable"));
      await done;
      assert.equal(await ends(insert()), Array(5).fill(cut === "answer" ? "duplicate" : "inserted"));

      const due = (): Promise<unknown>[] => numbers(5).map((n) => own.turns.setDue(cut, n, n));
      done = proxy.cutNext("update", "turns", cut);
      assert.equal(await ends(due()), Array(5).fill("store_unavailable"));
      await done;
      await Promise.all(due());

      const read = (): Promise<unknown>[] => numbers(5).map(async (n) => (await own.turns.byNumber(cut, n))?.dueAt);
      done = proxy.cutNext("find", "turns", cut);
      assert.equal(await ends(read()), Array(5).fill("store_unavailable"));
      await done;
      assert.equal(await ends(read()), numbers(5));
    }
  }));

test("rule 3: without a majority all are unknown, but what collided", () =>
  proxied(async (own, proxy) => {
    await own.turns.insert(turn("s", 2));
    const writeConcernError = { code: 64, codeName: "WriteConcernFailed", errmsg: "waiting for replication timed out" };
    let done = proxy.addToNext("insert", "turns", { writeConcernError });
    const unknown = "store_unavailable";
    assert.equal(await ends([1, 2, 3].map((n) => own.turns.insert(turn("s", n)))), [unknown, "duplicate", unknown]);
    await done;
    done = proxy.addToNext("update", "turns", { writeConcernError });
    assert.equal(await ends([1, 2].map((n) => own.turns.setDue("s", n, n))), [unknown, unknown]);
    await done;
    done = proxy.addToNext("insert", "turns", { n: 1 });
    assert.equal(await ends([4, 5].map((n) => own.turns.insert(turn("s", n)))), [unknown, unknown]);
    await done;
  }));

test("a document that is too large, or that somebody broke, harms no other of its command", () =>
  watched(async (own, sizes, database) => {
    const inputs = ["small", "x".repeat(limits.documentBytesMax), "y".repeat(limits.storeBatchBytesMax + 1), "small"];
    const told = await ends(inputs.map((input, n) => own.turns.insert(turn("s", n, { input }))));
    assert.equal(told, ["inserted", "input_too_large", "inserted", "inserted"]);
    assert.equal(sizes("insert"), [1, 1, 1]);
    await inDatabase(database, (db) => db.collection<{ _id: string }>("turns").updateOne({ _id: "s#2" }, { $set: { input: 7 } }));
    const read = await ends([0, 2, 3].map(async (n) => (await own.turns.byNumber("s", n))?.input));
    assert.equal(read, ["small", "document_invalid", "small"]);
  }));

test("what only the serialiser refuses harms no other of its command", () =>
  opened({}, (_, database) =>
    inDatabase(database, async (db) => {
      const keyed: Codec<string> = { encode: (value) => ({ [value]: 1 }), decode: String };
      const shape: Shape<{ id: string; key: string }> = {
        collection: "keyed",
        keyOf: ({ id }) => ({ _id: id }),
        fields: { id: ["_id", text], key: ["key", keyed] },
      };
      await db.command({ ping: 1 });
      const collection = db.collection<{ _id: string }>("keyed");
      const documents = new Documents(collection, shape, { log: silent, system: realSystem, sharded: false });
      const told = await ends(["a", "b\0", "c"].map((key) => documents.insert({ id: `of ${key.slice(0, 1)}`, key })));
      assert.equal(told, ["inserted", "document_invalid", "inserted"]);
      assert.is(await collection.countDocuments(), 2);
    }),
  ));

test("a read never answers what stood before it was asked for", () =>
  opened({}, async (own) => {
    await own.ownership.claim(ownership("s"));
    let last = 0;
    let acknowledged = 0;
    const writer = async (): Promise<void> => {
      for (let round = 0; round < 20; round += 1) {
        last += 1;
        const mine = last;
        await own.ownership.touch([{ session: "s", lastNumber: mine, lastSeq: 0, activeAt: 0 }]);
        acknowledged = Math.max(acknowledged, mine);
      }
    };
    const reader = async (): Promise<void> => {
      for (let round = 0; round < 20; round += 1) {
        const least = acknowledged;
        const found = (await own.ownership.get("s"))?.lastNumber ?? -1;
        assert.ok(found >= least, `${found} was read after ${least} had been acknowledged`);
      }
    };
    await Promise.all([...numbers(16).map(writer), ...numbers(32).map(reader)]);
    assert.is(acknowledged, 320);
  }));

test("10,000 inserts at once, of as many sessions, all stand, in commands within the limits", () =>
  watched(async (own, sizes, database) => {
    const told = await ends(numbers(10_000).map((n) => own.notes.insert(note(`s${n}`, 1))));
    assert.is(told.filter((one) => one === "inserted").length, 10_000);
    const commands = sizes("insert");
    assert.is(Math.max(...commands), limits.storeBatchMax);
    assert.is(
      commands.reduce((sum, one) => sum + one, 0),
      10_000,
    );
    assert.is(commands.length, 10_000 / limits.storeBatchMax);
    assert.is(await inDatabase(database, (db) => db.collection("notes").countDocuments()), 10_000);
  }));

test("a closed store refuses every call of a command", async () => {
  await opened({}, async (own) => {
    await own.close();
    for (const call of [() => own.notes.get("s", 1), () => own.notes.insert(note("s", 1))])
      for (const one of [call(), call()].map(refusal)) assert.is((await one).code, "closed");
  });
});

test.run();
