/** The indexes that carry the protocol are made at a start, missed when they are gone, and never taken on trust. */
import { indexSpecs } from "../../src/store/indexes.ts";
import { inDatabase, opened, recorder } from "../support/mongo.ts";
import { refusal } from "../support/refusal.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("indexes");

test("C1 a start notices a dropped index, says so, and makes it again; doctor only says so", async () => {
  for (const spec of indexSpecs) {
    await opened({}, async (store, database) => {
      assert.equal(await store.checkIndexes(), []);
      await inDatabase(database, (db) => db.collection(spec.collection).dropIndex(spec.name));
      const problems = await store.checkIndexes();
      assert.equal(
        problems.map(({ collection, name }) => [collection, name]),
        [[spec.collection, spec.name]],
      );
      assert.equal((await store.checkIndexes()).length, 1, "the check made it");

      const { log, lines } = recorder();
      await opened({ database, log }, async (again) => assert.equal(await again.checkIndexes(), []));
      assert.equal(
        lines.map(({ level, data }) => [level, data.code, data.collection, data.name]),
        [["warn", "index_missing", spec.collection, spec.name]],
      );
    });
  }
});

test("a first start, and a start on a whole database, warn of nothing", async () => {
  const { log, lines } = recorder();
  await opened({ log }, (_, database) => opened({ log, database }, async () => {}));
  assert.equal(lines, []);
});

test("C1 a start refuses where duplicates or another index stand in the way of a unique index", async () => {
  for (const { collection, name, key } of indexSpecs.filter((spec) => spec.unique)) {
    await opened({}, async (_, database) => {
      const documents = ["a", "b"].map((_id) => ({ _id, session: "s", turn_id: "t", generation: 0, entry_key: "k" }));
      await inDatabase(database, async (db) => {
        await db.collection(collection).dropIndex(name);
        await db.collection<{ _id: string }>(collection).insertMany(documents);
      });
      const error = await refusal(opened({ database }, async () => {}));
      assert.is(error.code, "index_missing");
      assert.is(error.data.name, name);
      assert.match(error.message, /duplicates/);

      await inDatabase(database, async (db) => {
        await db.collection(collection).deleteMany({});
        await db.collection(collection).createIndex(key, { name });
      });
      assert.is((await refusal(opened({ database }, async () => {}))).code, "index_missing", "a plain index of that name");
    });
  }
});

test.run();
