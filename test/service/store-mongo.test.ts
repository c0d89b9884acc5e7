/** The MongoDB store's own promises: concerns, connections, and documents that somebody edited. */
import { inspect } from "node:util";
import type { CommandStartedEvent } from "mongodb";
import { type MongoStore, openMongoStore } from "../../src/store/store.ts";
import { realSystem } from "../../src/system.ts";
import { dropDatabase, inDatabase, opened, recorder, silent, withClient } from "../support/mongo.ts";
import { refusal } from "../support/refusal.ts";
import { mongoUrl, uniqueName } from "../support/services.ts";
import { at, entry, frozen, heard, intent, note, ownership, turn } from "../support/store-records.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("the store in MongoDB");

test("rule 3: every read asks for majority on the primary, every write for majority, whatever the URL says", async () => {
  const url = new URL(mongoUrl());
  url.pathname ||= "/";
  for (const [name, value] of Object.entries({ w: "1", journal: "false", readConcernLevel: "local", readPreference: "secondaryPreferred" }))
    url.searchParams.set(name, value);
  const events: CommandStartedEvent[] = [];
  await withClient(url.href, { monitorCommands: true }, (client) => {
    client.on("commandStarted", (event) => void events.push(event));
    return opened({ client }, everyCall);
  });

  const seen = new Set(events.map((event) => event.commandName));
  for (const name of ["insert", "update", "find", "createIndexes"]) assert.ok(seen.has(name), `no ${name} was sent`);
  for (const { commandName, command } of events) {
    if (commandName === "find") assert.is(command.readConcern?.level, "majority");
    if (["insert", "update", "createIndexes"].includes(commandName)) {
      assert.is(command.writeConcern?.w, "majority", commandName);
      assert.ok(command.writeConcern?.wtimeout > 0, commandName);
    }
    // To a lone server the driver itself adds primaryPreferred.
    assert.ok(["primary", "primaryPreferred"].includes(command.$readPreference?.mode ?? "primary"), commandName);
    assert.not("txnNumber" in command && "startTransaction" in command);
    assert.not.match(JSON.stringify(command), /"(u|update)":\[/, "a pipeline update");
  }
});

/** Each function of the port, once. */
async function everyCall({
  ownership: owners,
  turns,
  log,
  notes,
  observations,
  states,
  parts,
  journal,
  settings,
}: MongoStore): Promise<void> {
  await owners.claim(ownership("s"));
  await owners.freeze("s", { bot: "ada", ownerEpoch: 0, from: null }, frozen);
  await owners.rollForward("s", { bot: "bea", ownerEpoch: 1 });
  await owners.touch([{ session: "s", lastNumber: 1, lastSeq: 1, activeAt: 1 }]);
  await owners.list({ limit: 1 });
  await turns.insert(turn("s", 1, { open: "1:1", letter: "1:1" }));
  await turns.byId("s", "turn 1", 0);
  await turns.addAttempt("s", 1, { number: 1, worker: "w", startedAt: at, endedAt: at, error: { code: "c", message: "m" } }, 1);
  await turns.setDue("s", 1, 2);
  await turns.addCrash("s", 1, null, { job: "1", count: 1 }, 1);
  await turns.setStartMark("s", 1, "w");
  await turns.setCancelMark("s", 1, "user");
  await turns.open(1, null, 1);
  await turns.letters(1, null, 1);
  await turns.settle([{ session: "s", number: 1, outcome: "dead", outcomeSeq: 1, letter: "1:1" }]);
  await turns.clearLetter("s", 1);
  await log.insert(entry("s", 1));
  await log.byKey("s", "key 1");
  await log.read("s", 1, 5);
  await notes.insert(note("s", 1));
  await notes.get("s", 1);
  await observations.baseline("s", "ada", 0, heard("a"), at);
  await observations.project("s", 0, null, at);
  await states.put("m", []);
  await states.get("m");
  await parts.put("p", "text");
  await parts.get("p");
  await journal.insert(intent("s", "c", 0));
  await journal.ofCall("s", "c");
  await settings.once("n", "v");
}

test("nothing is stored as null, and every document has its version", async () => {
  for (const ignoreUndefined of [true, false]) {
    await withClient(mongoUrl(), { ignoreUndefined }, (client) =>
      opened({ client }, async (store, database) => {
        await everyCall(store);
        await store.turns.insert(turn("s2", 1));
        await inDatabase(database, async (db) => {
          for (const { name } of await db.listCollections().toArray()) {
            for (const document of await db.collection(name).find({}).toArray()) {
              assert.is(document.v, 1, name);
              assert.not.match(JSON.stringify(document), ":null", name);
            }
          }
        });
      }),
    );
  }
});

test("an unreachable server is unavailable, a URL that is none is a configuration error", async () => {
  await withClient("mongodb://127.0.0.1:1/", { serverSelectionTimeoutMS: 100 }, async (client) => {
    const away = await refusal(opened({ client }, async () => {}));
    assert.equal([away.code, away.kind], ["store_unavailable", "later"]);
    const both = openMongoStore({ url: mongoUrl(), client, database: "none", system: realSystem, log: silent });
    assert.is((await refusal(both)).code, "configuration");
  });
  for (const url of ["http://ann:secret@127.0.0.1/", "mongodb://ann:secret@[", "mongodb://ann:secret@127.0.0.1/?nonsense=1", ""]) {
    const wrong = await refusal(opened({ url }, async () => {}));
    assert.is(wrong.code, "configuration", url);
    assert.not.match(inspect(wrong), "secret");
  }
});

test("a name that no database can have is a configuration error", async () => {
  for (const database of ["", "a.b", "a b", "a/b", "$a", "a\0", "x".repeat(64)]) {
    assert.is((await refusal(opened({ database }, async () => {}))).code, "configuration", database);
  }
});

test("close ends a client of its own, and leaves one that was handed in", async () => {
  await withClient(mongoUrl(), {}, async (client) => {
    await opened({ client }, async (store) => store.ping());
    assert.is((await client.db("admin").command({ ping: 1 })).ok, 1);
  });

  const name = uniqueName("own");
  const own = await openMongoStore({ url: mongoUrl(), database: name, system: realSystem, log: silent });
  await own.ping();
  await own.close();
  await own.close();
  for (const call of [() => own.ping(), () => own.notes.get("s", 1), () => own.notes.insert(note("s", 1))])
    assert.is((await refusal(call())).code, "closed");
  await dropDatabase(name);
});

test("a document that cannot be read is logged and left out of a listing, and hides no other", async () => {
  const { log, lines } = recorder();
  await opened({ log }, async (store, database) => {
    for (let n = 1; n <= 4; n += 1) {
      await store.turns.insert(turn("s", n, { open: `1:${n}` }));
      await store.ownership.claim(ownership(`s${n}`, { activeAt: n }));
    }
    await inDatabase(database, async (db) => {
      await db.collection<{ _id: string }>("turns").updateOne({ _id: "s#1" }, { $set: { input: 7 } });
      await db.collection<{ _id: string }>("turns").updateOne({ _id: "s#2" }, { $set: { v: 2 } });
      await db.collection<{ _id: string }>("session_ownership").updateOne({ _id: "s4" }, { $set: { bot_id: null } });
    });
    assert.equal(
      (await store.turns.open(1, null, 1)).map((one) => one.number),
      [3],
    );
    assert.equal(
      (await store.turns.open(1, null, 10)).map((one) => one.number),
      [3, 4],
    );
    assert.equal(
      (await store.ownership.list({ limit: 10 })).map((one) => one.session),
      ["s3", "s2", "s1"],
    );
  });
  const told = new Set(lines.map(({ level, data }) => `${level} ${data.code} ${data.collection} ${data._id} ${data.field}`));
  assert.equal([...told].sort(), [
    "error document_invalid session_ownership s4 bot_id",
    "error document_invalid turns s#1 input",
    "error version_ahead turns s#2 undefined",
  ]);
});

test("a document whose _id and fields disagree is not taken for either", async () => {
  await opened({}, async (store, database) => {
    await store.turns.insert(turn("s", 1));
    await inDatabase(database, (db) => db.collection<{ _id: string }>("turns").updateOne({ _id: "s#1" }, { $set: { number: 2 } }));
    const error = await refusal(store.turns.byNumber("s", 1));
    assert.equal([error.code, error.data.field], ["document_invalid", "_id"]);
  });
});

test("a point read costs the same among 5,000 documents of the session as among none", async () => {
  await opened({}, async (store) => {
    const time = async (n: number): Promise<number> => {
      const began = realSystem.monotonic();
      for (let round = 0; round < 40; round += 1) {
        await store.turns.byNumber("s", n);
        await store.turns.byId("s", `turn ${n}`, 0);
        await store.turns.setDue("s", n, round);
      }
      return realSystem.monotonic() - began;
    };
    await store.turns.insert(turn("s", 1));
    await time(1);
    const before = await time(1);
    for (let from = 2; from < 5_000; from += 500)
      await Promise.all(Array.from({ length: 500 }, (_, n) => store.turns.insert(turn("s", from + n))));
    const after = await time(4_000);
    // A scan of 5,000 documents takes 20 to 50 times as long as a point read; the factor leaves room for a busy machine.
    assert.ok(after < before * 5 + 50, `${after} ms against ${before} ms`);
  });
});

test.run();
