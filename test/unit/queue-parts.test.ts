/** The pure parts of the queues: names, payloads, what a server says of itself, errors. */
import fc from "fast-check";
import { HeadfastError } from "../../src/domain/errors.ts";
import { limits } from "../../src/domain/limits.ts";
import { queueError } from "../../src/queues/errors.ts";
import { decodeId, encodeId, letterJobId, refusedJobId, shardOf, turnJobId } from "../../src/queues/names.ts";
import { activationData, readActivation, readHead, readTurnJob, turnData } from "../../src/queues/payloads.ts";
import { readInfo, readTime, unfit } from "../../src/queues/redis-facts.ts";
import { turn } from "../support/queue-records.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("parts of the queues");

/** Well-formed text with what is special somewhere in it, often. */
const ids = fc.oneof(
  fc.string({ minLength: 1, maxLength: 40, unit: "binary" }).filter((text) => text.isWellFormed()),
  fc.string({
    minLength: 1,
    maxLength: 8,
    unit: fc.constantFrom("~", "%", ":", ".", "-", "0", "7", "{", "}", "*", "'", "é", "😀", "\0", " "),
  }),
);

test("an encoded id is reversible, no integer, and holds nothing that BullMQ, a cluster or a pattern takes for its own", () => {
  fc.assert(
    fc.property(ids, (id) => {
      const encoded = encodeId(id);
      assert.is(decodeId(encoded), id);
      assert.match(encoded, /^~[A-Za-z0-9\-_.%]+$/);
      assert.ok(Number.isNaN(Number(encoded)));
    }),
    { numRuns: 2_000, seed: 7 },
  );
});

test("no two pairs or triples of ids share a name", () => {
  const names = new Map<string, string>();
  const once = (name: string, what: unknown[]): void => {
    const text = JSON.stringify(what);
    assert.is(names.get(name) ?? text, text, `${name} is shared`);
    names.set(name, text);
  };
  fc.assert(
    fc.property(ids, ids, fc.nat(12), (session, turnId, generation) => {
      once(turnJobId(turnId, generation), [turnId, generation]);
      once(letterJobId(session, turnId, generation), ["letter", session, turnId, generation]);
      once(refusedJobId(session, turnId), ["refused", session, turnId]);
    }),
    { numRuns: 2_000, seed: 8 },
  );
});

test("shards are stable and even", () => {
  assert.equal(
    ["a", "tg:42", "日本"].map((id) => shardOf(id, 16)),
    [7, 9, 12],
  );
  const counts = new Array<number>(8).fill(0);
  for (let index = 0; index < 8_000; index += 1) counts[shardOf(`slack:C${index}`, 8)] = (counts[shardOf(`slack:C${index}`, 8)] ?? 0) + 1;
  for (const count of counts) assert.ok(count > 850 && count < 1_150, `${counts}`);
});

test("a turn's payload comes back as it went, the one in its activation too", () => {
  const texts = fc.string({ maxLength: 60, unit: "binary" }).map((text) => text.toWellFormed());
  const users = fc.record({ id: ids, name: texts }, { requiredKeys: ["id"], noNullPrototype: true });
  const patches = fc.record({ user: users, deliverTo: texts, traceparent: texts }, { requiredKeys: [], noNullPrototype: true });
  fc.assert(
    fc.property(ids, ids, texts, fc.nat(9), patches, (session, turnId, input, generation, patch) => {
      const sent = turn(session, 3, { turnId, generation, input, ...patch });
      const jobId = turnJobId(turnId, generation);
      const expected = { jobId, turnId, generation, number: 3, bot: "ada", input, ...patch };
      assert.equal(readTurnJob(jobId, turnData(sent)), expected);
      const data = JSON.parse(activationData(session, { jobId, data: turnData(sent) })) as unknown;
      assert.is(readActivation(data), session);
      if (turnData(sent).length <= limits.headCharsMax) assert.equal(readHead(data), expected);
    }),
    { numRuns: 1_000, seed: 9 },
  );
});

test("a head that is not ours is no head; an activation that is none has no session", () => {
  const good = { schema_version: 1, turn_id: "t", generation: 0, number: 1, bot: "ada", input: "x" };
  assert.ok(readHead({ head: { job_id: "j", turn: good } }) !== undefined);
  const bad = [
    null,
    7,
    "x",
    [],
    {},
    { ...good, number: undefined },
    { ...good, number: 0 },
    { ...good, number: 1.5 },
    { ...good, bot: "" },
  ];
  const worse = [
    { ...good, schema_version: 2 },
    { ...good, turn_id: 7 },
    { ...good, user: "x" },
    { ...good, user: {} },
    { ...good, input: null },
  ];
  for (const wrong of [...bad, ...worse]) assert.is(readHead({ head: { job_id: "j", turn: wrong } }), undefined, JSON.stringify(wrong));
  for (const data of [undefined, null, 1, { head: null }, { head: { turn: good } }]) assert.is(readHead(data), undefined);
  for (const data of [undefined, null, "s", {}, { session: "" }, { session: 7 }, { session: "x".repeat(limits.idBytesMax + 1) }]) {
    assert.is(readActivation(data), undefined);
  }
});

test("a payload of a newer release is refused by no letter, but waited for", () => {
  for (const data of [{ schema_version: 2 }, { schema_version: 99, turn_id: 7 }]) {
    try {
      readTurnJob("j", JSON.stringify(data));
      assert.unreachable();
    } catch (error) {
      assert.is((error as HeadfastError).code, "version_ahead");
    }
  }
  for (const raw of ["", "{", "null", "[]", "7", '"x"', "{}"]) assert.ok("refused" in readTurnJob("j", raw), raw);
  for (const jobId of ["7", "-7", "007"]) assert.ok("refused" in readTurnJob(jobId, turnData(turn("s", 1))), jobId);
});

const info = "# Server\r\nredis_version:7.0.15\r\nrun_id:abc\r\nuptime_in_seconds:42\r\n\r\n# Memory\r\nmaxmemory_policy:noeviction\r\n";

test("INFO and TIME are read", () => {
  assert.equal(readInfo(info), { version: "7.0.15", runId: "abc", uptimeMs: 42_000, evictionPolicy: "noeviction" });
  assert.equal(readInfo(""), { version: "", runId: "", uptimeMs: 0, evictionPolicy: "" });
  assert.is(readTime(["1700000000", "123999"]), 1_700_000_000_123);
});

test("an old server, an evicting one and a wrong clock are refused by name", () => {
  const facts = readInfo(info);
  const code = (patch: Partial<typeof facts>, skew = 0): string | undefined => unfit({ ...facts, ...patch }, skew)?.code;
  for (const version of ["6.2.0", "6.2.14", "7.0.0", "8.1.2", "10.0.0"]) assert.is(code({ version }), undefined, version);
  for (const version of ["6.1.9", "6.0.16", "5.0.7", "2.8.24", ""]) assert.is(code({ version }), "configuration", version);
  for (const evictionPolicy of ["allkeys-lru", "volatile-lru", "volatile-ttl"]) assert.is(code({ evictionPolicy }), "eviction_policy");
  assert.equal(
    [code({}, limits.clockSkewMsMax), code({}, limits.clockSkewMsMax + 1), code({}, -limits.clockSkewMsMax - 1)],
    [undefined, "clock_skew", "clock_skew"],
  );
});

test("errors are translated by code, and carry nothing that was sent", () => {
  const reply = (message: string): Error =>
    Object.assign(new Error(message), { name: "ReplyError", command: { name: "set", args: ["a secret"] } });
  const cases: [Error, string][] = [
    [reply("OOM command not allowed when used memory > 'maxmemory'."), "queue_unavailable"],
    [reply("ERR Error running script (call to f_1): @user_script:1: -OOM command not allowed"), "queue_unavailable"],
    [reply("LOADING Redis is loading the dataset in memory"), "queue_unavailable"],
    [reply("READONLY You can't write against a read only replica."), "queue_unavailable"],
    [reply("NOAUTH Authentication required."), "configuration"],
    [reply("WRONGTYPE Operation against a key holding the wrong kind of value"), "unexpected"],
    [Object.assign(reply("EXECABORT Transaction discarded"), { previousErrors: [reply("OOM command not allowed")] }), "queue_unavailable"],
    [Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" }), "queue_unavailable"],
    [new Error("Connection is closed."), "queue_unavailable"],
  ];
  for (const [error, code] of cases) {
    const ours = queueError("doing", error);
    assert.is(ours.code, code, error.message);
    assert.not.match(JSON.stringify([ours.data, Object.entries(ours.cause as object)]), /secret/);
  }
  const same = new HeadfastError("closed", "x");
  assert.is(queueError("doing", same), same);
});

test.run();
