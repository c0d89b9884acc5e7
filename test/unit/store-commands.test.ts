/** What a driver's answers to one command of many mean for each of them. */
import { BSON, type BulkWriteResult, MongoBulkWriteError, MongoNetworkError } from "mongodb";
import { type DriverCollection, type PointRead, readAll, type Write, writeAll } from "../../src/store/commands.ts";
import { isDuplicateKey, storeError } from "../../src/store/errors.ts";
import type { Stored } from "../../src/store/mapping.ts";
import { refusal } from "../support/refusal.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("commands of many");

const inserts = (...ids: string[]): Write[] => ids.map((_id) => ({ insertOne: { document: { _id } } }));
const reads = (...ids: string[]): PointRead[] => ids.map((_id) => ({ _id, filter: { _id }, session: undefined }));

function bulkThat(execute: () => Promise<unknown>, raw: (write: Write) => void = () => {}): DriverCollection {
  return { initializeUnorderedBulkOp: () => ({ raw, execute }) } as unknown as DriverCollection;
}

function refused(codes: Record<number, number>, insertedCount: number, majority: boolean): MongoBulkWriteError {
  const writeErrors = Object.entries(codes).map(([index, code]) => ({ index: Number(index), code }));
  const result = { insertedCount, getWriteErrors: () => writeErrors, getWriteConcernError: () => (majority ? undefined : { code: 64 }) };
  return new MongoBulkWriteError({ message: "m", code: 11000 } as never, result as unknown as BulkWriteResult);
}

/** `stored`, `duplicate`, or the code of the error. */
async function ends(collection: DriverCollection, writes: Write[]): Promise<string[]> {
  return (await writeAll(collection, writes)).map((one) => {
    if (!("error" in one)) return "stored";
    return isDuplicateKey(one.error) ? "duplicate" : storeError(one.error, "insert").code;
  });
}

const four = inserts("a", "b", "c", "d");

test("an error of one document is its own", async () => {
  const collection = bulkThat(() => Promise.reject(refused({ 1: 11000, 2: 10334 }, 2, true)));
  assert.equal(await ends(collection, four), ["stored", "duplicate", "input_too_large", "stored"]);
});

test("without a majority all that have no error of their own are unknown", async () => {
  const collection = bulkThat(() => Promise.reject(refused({ 1: 11000 }, 3, false)));
  assert.equal(await ends(collection, four), ["store_unavailable", "duplicate", "store_unavailable", "store_unavailable"]);
});

test("documents that the server does not account for are unknown", async () => {
  const unknown = "store_unavailable";
  assert.equal(
    await ends(
      bulkThat(async () => ({ insertedCount: 3 })),
      four,
    ),
    [unknown, unknown, unknown, unknown],
  );
  assert.equal(
    await ends(
      bulkThat(() => Promise.reject(refused({ 1: 11000 }, 2, true))),
      four,
    ),
    [unknown, "duplicate", unknown, unknown],
  );
  assert.equal(
    await ends(
      bulkThat(async () => ({ insertedCount: 4 })),
      four,
    ),
    ["stored", "stored", "stored", "stored"],
  );
});

test("a lost answer keeps its class, whatever the driver wraps it in", async () => {
  const result = { insertedCount: 0, getWriteErrors: () => [], getWriteConcernError: () => undefined } as unknown as BulkWriteResult;
  const collection = bulkThat(() => Promise.reject(new MongoBulkWriteError(new MongoNetworkError("m"), result)));
  assert.equal(await ends(collection, four), Array(4).fill("store_unavailable"));
});

test("a document that cannot be serialised is left out, and the indexes of the others still are theirs", async () => {
  const raw = (write: Write): void => {
    if ("insertOne" in write && write.insertOne.document._id === "b") throw new BSON.BSONError("m");
  };
  const collection = bulkThat(() => Promise.reject(refused({ 1: 11000 }, 2, true)), raw);
  assert.equal(await ends(collection, four), ["stored", "document_invalid", "duplicate", "stored"]);
  const none = bulkThat(
    () => Promise.reject(new Error("an empty command")),
    () => {
      throw new BSON.BSONError("m");
    },
  );
  assert.equal(await ends(none, four), Array(4).fill("document_invalid"));
});

/** A collection of these, that notes what was asked for. */
function readable(ids: string[], broken: string[] = []): { collection: DriverCollection; asked: unknown[] } {
  const asked: unknown[] = [];
  const read = (of: string[]): Stored[] => {
    if (of.some((_id) => broken.includes(_id))) throw new BSON.BSONError("m");
    return of.filter((_id) => ids.includes(_id)).map((_id) => ({ _id }));
  };
  const collection = {
    find: (filter: { _id: { $in: string[] } }) => {
      asked.push(filter);
      return { toArray: async () => read(filter._id.$in).reverse() };
    },
    findOne: async (filter: { _id: string }) => {
      asked.push(filter);
      return read([filter._id])[0];
    },
  };
  return { collection: collection as unknown as DriverCollection, asked };
}

test("each read has the document of its own `_id`; one that is asked for twice is read once", async () => {
  const { collection, asked } = readable(["a", "c"]);
  const found = await readAll(collection, reads("c", "b", "a", "c"));
  assert.equal(found, [{ value: { _id: "c" } }, { value: null }, { value: { _id: "a" } }, { value: { _id: "c" } }]);
  assert.equal(asked, [{ _id: { $in: ["c", "b", "a"] } }]);
  assert.equal(await readAll(collection, reads("a", "a")), [{ value: { _id: "a" } }, { value: { _id: "a" } }]);
  assert.equal(asked.slice(1), [{ _id: "a" }]);
});

test("rule 16: behind a mongos a command of many is routed by all their sessions", async () => {
  const { collection, asked } = readable([]);
  const routed = ["s", "t"].flatMap((session) =>
    [1, 2].map((n) => ({ _id: `${session}#${n}`, filter: { _id: `${session}#${n}`, session }, session })),
  );
  await readAll(collection, routed);
  assert.equal(asked, [{ _id: { $in: ["s#1", "s#2", "t#1", "t#2"] }, session: { $in: ["s", "t"] } }]);
});

test("a document that is no BSON fails its own reader only; a lost answer fails all", async () => {
  const { collection } = readable(["a", "b", "c"], ["b"]);
  const found = await readAll(collection, reads("a", "b", "c"));
  assert.equal(
    found.map((one) => ("error" in one ? storeError(one.error, "find").code : one.value?._id)),
    ["a", "document_invalid", "c"],
  );
  const lost = { find: () => ({ toArray: () => Promise.reject(new MongoNetworkError("m")) }) } as unknown as DriverCollection;
  assert.is(storeError(await refusal(readAll(lost, reads("a", "b"))), "find").code, "store_unavailable");
});

test.run();
