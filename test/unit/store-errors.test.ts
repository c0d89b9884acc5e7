import * as mongodb from "mongodb";
import { type ErrorCode, HeadfastError } from "../../src/domain/errors.ts";
import { isDuplicateKey, storeError } from "../../src/store/errors.ts";
import { checkShardKeys } from "../../src/store/shard-keys.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("the driver's errors as ours");

const server = (code: number, errorLabels: string[] = []): mongodb.MongoServerError =>
  new mongodb.MongoServerError({ message: "m", errmsg: "m", code, errorLabels });

function check(error: unknown, code: ErrorCode): void {
  const ours = storeError(error, "insert in turns");
  assert.is(ours.code, code, `${(error as Error).name} ${(error as { code?: unknown }).code}`);
  assert.is(ours.cause, error);
  assert.match(ours.message, "insert in turns");
}

test("I12 no answer, no primary, no majority: come back later", () => {
  for (const error of [
    new mongodb.MongoNetworkError("m"),
    new mongodb.MongoNetworkTimeoutError("m", {}),
    new mongodb.MongoServerSelectionError("m", {} as mongodb.TopologyDescription),
    new mongodb.MongoOperationTimeoutError("m"),
    new mongodb.MongoWriteConcernError({ ok: 1, writeConcernError: { code: 64, errmsg: "m" } } as never),
    Object.assign(new Error("m"), { name: "MongoWaitQueueTimeoutError" }),
  ])
    check(error, "store_unavailable");
  for (const code of [6, 50, 64, 89, 91, 189, 262, 10107, 11600, 11602, 13435, 13436]) check(server(code), "store_unavailable");
  check(server(123456, ["RetryableWriteError"]), "store_unavailable");
  assert.is(storeError(server(91), "x").kind, "later");
});

test("what no retry mends is a configuration error", () => {
  for (const code of [13, 18, 8000]) check(server(code), "configuration");
  check(new mongodb.MongoParseError("m"), "configuration");
  check(new mongodb.MongoMissingCredentialsError("m"), "configuration");
});

test("too large, not storable, closed, and what nobody foresaw", () => {
  for (const code of [10334, 17419]) check(server(code), "input_too_large");
  check(Object.assign(new RangeError("m"), { code: "ERR_OUT_OF_RANGE" }), "input_too_large");
  check(new mongodb.BSON.BSONError("m"), "document_invalid");
  check(new mongodb.MongoTopologyClosedError("m"), "closed");
  check(new mongodb.MongoNotConnectedError("m"), "closed");
  check(server(9), "unexpected");
  check(new TypeError("m"), "unexpected");
});

test("ours pass through, and a message never quotes a document", () => {
  const ours = new HeadfastError("document_invalid", "m");
  assert.is(storeError(ours, "x"), ours);
  const quoting = new mongodb.MongoServerError({ message: "dup key: { input: 'secret' }", code: 9 });
  assert.not.match(storeError(quoting, "x").message, "secret");
});

test("a collision is known by its code alone", () => {
  assert.ok(isDuplicateKey(server(11000)));
  assert.not(isDuplicateKey(server(11001)));
  assert.not(isDuplicateKey(new Error("E11000 duplicate key error")));
});

test("rule 16: a cluster's shard keys are refused by name where they are others", async () => {
  const keys = (sharded: Record<string, Record<string, unknown>>) => checkShardKeys(async (collection) => sharded[collection] ?? null);
  await keys({});
  await keys({ turns: { session: 1 }, transcript: { session: 1 }, session_ownership: { _id: "hashed" }, settings: { _id: 1 } });
  for (const [collection, key] of [
    ["turns", { _id: 1 }],
    ["transcript", { session: "hashed" }],
    ["notes", { session: 1, number: 1 }],
    ["session_ownership", { bot_id: 1 }],
  ] as const) {
    const error = await keys({ [collection]: key }).then(
      () => undefined,
      (refused: HeadfastError) => refused,
    );
    assert.is(error?.code, "configuration");
    assert.match(error?.message ?? "", collection);
  }
});

test.run();
