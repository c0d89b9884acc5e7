/** `headfast doctor` on services that are fit, and on each that is not. */
import { renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { ownRedis } from "../../services/redis.ts";
import type { Check } from "../../src/cli/doctor-check.ts";
import { Headfast } from "../../src/main.ts";
import { encodeId, shardPrefix, turnJobId, turnsQueue } from "../../src/queues/names.ts";
import { botFolder, runCli } from "../support/cli.ts";
import { dropDatabase, inDatabase } from "../support/mongo.ts";
import { eventually } from "../support/queue-records.ts";
import { mongoUrl, uniqueName } from "../support/services.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("cli doctor", { timeoutMs: 60_000 });
const bots = botFolder("cli-doctor");
const namespace = uniqueName("doctor").slice(0, 38);
let redis: Awaited<ReturnType<typeof ownRedis>>;
let hf: Headfast;

test.before(async () => {
  redis = await ownRedis({ appendOnly: true });
  hf = await Headfast.connect({ redis: redis.url, mongo: mongoUrl(), namespace });
});

test.after(async () => {
  await hf.close();
  await redis.stop();
  bots.remove();
  await dropDatabase(namespace);
});

interface Verdict {
  code: number | null;
  verdict: string;
  /** The checks of that name. */
  of(name: string): Check[];
  status(name: string): string | undefined;
}

async function doctor(args: readonly string[] = [], url = redis.url): Promise<Verdict> {
  const { code, stdout, stderr } = await runCli([
    "doctor",
    "--json",
    "--redis",
    url,
    "--mongo",
    mongoUrl(),
    "--namespace",
    namespace,
    "--config",
    bots.config,
    ...args,
  ]);
  assert.is(stderr, "");
  const { verdict, checks } = JSON.parse(stdout) as { verdict: string; checks: Check[] };
  const of = (name: string): Check[] => checks.filter(({ check }) => check === name);
  return { code, verdict, of, status: (name) => of(name)[0]?.status };
}

test("fit services and repositories are ok; a MongoDB that is one server, or the stand-in, is degraded", async () => {
  const { code, verdict, of, status } = await doctor();
  for (const name of [
    "redis",
    "redis eviction policy",
    "redis persistence",
    "redis clock",
    "mongodb indexes",
    "shards",
    "sessions",
    "dead letters",
    "git",
    "config",
    "memory of ada",
    "persona of ada",
    "memory of strict",
  ]) {
    assert.is(status(name), "ok", `${name}: ${of(name)[0]?.detail}`);
  }
  assert.match(of("shards")[0]?.detail ?? "", "1");
  const degraded = status("mongodb") === "degraded";
  assert.equal([code, verdict], degraded ? [4, "degraded"] : [0, "ok"]);
});

test("an evicting Redis fails by name, and what is behind it is not looked at", async () => {
  const evicting = await ownRedis({ config: { maxmemory: "50mb", "maxmemory-policy": "allkeys-lru" } });
  try {
    const { code, verdict, of, status } = await doctor([], evicting.url);
    assert.equal([code, verdict], [1, "failed"]);
    assert.equal([of("redis eviction policy")[0]?.status, of("redis eviction policy")[0]?.code], ["failed", "eviction_policy"]);
    assert.match(of("redis eviction policy")[0]?.advice ?? "", "CONFIG SET maxmemory-policy noeviction");
    assert.is(status("redis persistence"), "degraded");
    assert.is(status("sessions"), "skipped");
    const worker = await runCli([
      "worker",
      "--redis",
      evicting.url,
      "--mongo",
      mongoUrl(),
      "--namespace",
      namespace,
      "--config",
      bots.config,
    ]);
    assert.is(worker.code, 1);
    assert.match(worker.stderr, /^headfast: eviction_policy: /m);
  } finally {
    await evicting.stop();
  }
});

test("services that do not answer fail by name, without their passwords", async () => {
  const args = [
    "doctor",
    "--redis",
    "redis://:s3cret@127.0.0.1:9",
    "--mongo",
    "mongodb://u:s3cret@127.0.0.1:9/?serverSelectionTimeoutMS=200",
  ];
  const { code, stdout, stderr } = await runCli(args);
  assert.is(code, 1);
  assert.match(stdout, /failed +redis +queue_unavailable/);
  assert.match(stdout, /failed +mongodb +store_unavailable/);
  assert.not.match(stdout + stderr, "s3cret");
});

test("a turn that no worker takes, a parked or dead one: told with what is known", async () => {
  await hf.turns.send({ bot: "ada", session: "tg:42", turnId: "t1", input: "hello" });
  const waits = await doctor(["--stuck-after-ms", "0"]);
  assert.is(waits.code, 4);
  assert.match(waits.of("session tg:42")[0]?.detail ?? "", 'turn "t1" is open since');
  assert.match(waits.of("session tg:42")[0]?.detail ?? "", "its activation waits");

  const client = new Redis(redis.url);
  const keys = await client.keys("*:activations:de:*");
  assert.is(keys.length, 1);
  await client.del(...keys);
  client.disconnect();
  const lost = await doctor(["--stuck-after-ms", "0"]);
  assert.match(lost.of("session tg:42")[0]?.detail ?? "", "Redis knows no activation");
  assert.is((await doctor()).status("sessions"), "ok", "five minutes have not passed");
  await hf.turns.cancel({ session: "tg:42", turnId: "t1" });
});

test("a turn of a newer release is named, waiting or put back by a worker of this one, which leaves it as it is", async () => {
  const connection = new Redis(redis.url, { maxRetriesPerRequest: null });
  const prefix = shardPrefix(namespace, 0);
  const turns = new Queue(turnsQueue("newer:1"), { connection, prefix });
  const activations = new Queue("activations", { connection, prefix });
  const data = { schema_version: 2, turn_id: "n1", bot: "ada", said: ["hello"] };
  await turns.add("turn", data, { jobId: turnJobId("n1", 0) });
  await activations.add("activate", { schema_version: 1, session: "newer:1" }, { deduplication: { id: encodeId("newer:1") } });
  const told = async (): Promise<void> => {
    const { code, of } = await doctor();
    const [check, ...more] = of("session newer:1");
    assert.equal([code, check?.status, check?.code, more], [4, "degraded", "version_ahead", []]);
    assert.match(check?.detail ?? "", "schema_version 2, this release knows 1");
    assert.match(check?.advice ?? "", "run a worker of the newer release");
  };
  await told();
  const served = await Headfast.start({ redis: redis.url, mongo: mongoUrl(), namespace, bots: await configured() });
  try {
    await eventually("the session is put back", async () => (await activations.getDelayedCount()) === 1);
    await told();
  } finally {
    await served.close();
  }
  const job = await turns.getJob(turnJobId("n1", 0));
  assert.equal([job?.data, await job?.getState(), job?.attemptsMade], [data, "waiting", 0]);
  await turns.obliterate({ force: true });
  await activations.obliterate({ force: true });
  await Promise.all([turns.close(), activations.close()]);
  connection.disconnect();
});

test("one session: its log and prefix are ok; edited by hand each fails by name", async () => {
  const served = await Headfast.start({ redis: redis.url, mongo: mongoUrl(), namespace, bots: await configured() });
  try {
    const sent = await served.turns.send({ bot: "ada", session: "s:1", turnId: "t1", input: "hello" });
    assert.is((await served.turns.wait(sent, { timeoutMs: 20_000 })).outcome, "done");
    const bad = await served.turns.send({ bot: "strict", session: "s:2", turnId: "t1", input: "fail" });
    assert.is((await served.turns.wait(bad, { timeoutMs: 20_000 })).outcome, "dead");
  } finally {
    await served.close();
  }
  const sound = await doctor(["--session", "s:1"]);
  assert.equal([sound.status("log of s:1"), sound.status("prefix of s:1")], ["ok", "ok"]);
  assert.match(sound.of("dead letters")[0]?.detail ?? "", /^1 \(1 model_refused\), 1 of them hold their session back$/);

  await inDatabase(namespace, async (db) => {
    const ids = db.collection<{ _id: string }>("session_ownership");
    await ids.updateOne({ _id: "s:1" }, { $set: { persona_snapshot: "You are somebody else.\n" } });
    await db.collection("transcript").updateOne({ session: "s:1" }, { $set: { worker: "somebody" } });
  });
  const edited = await doctor(["--session", "s:1"]);
  assert.is(edited.code, 1);
  assert.equal([edited.of("log of s:1")[0]?.code, edited.of("prefix of s:1")[0]?.code], ["document_invalid", "prefix_drift"]);
});

async function configured(): Promise<Parameters<typeof Headfast.start>[0]["bots"]> {
  const { bots: make } = (await import(bots.config)) as { bots(): Promise<Parameters<typeof Headfast.start>[0]["bots"]> };
  return make();
}

test("a repository that is not ready is degraded, a persona that cannot be read fails", async () => {
  renameSync(bots.memory, `${bots.memory}.away`);
  const away = await doctor();
  assert.is(away.status("memory of ada"), "degraded");
  renameSync(`${bots.memory}.away`, bots.memory);
  rmSync(join(bots.memory, "PERSONA.md"));
  symlinkSync("notes.md", join(bots.memory, "PERSONA.md"));
  const linked = await doctor();
  assert.is(linked.code, 1);
  assert.equal([linked.of("persona of ada")[0]?.status, linked.of("persona of ada")[0]?.code], ["failed", "memory_unreadable"]);
  rmSync(join(bots.memory, "PERSONA.md"));
  writeFileSync(join(bots.memory, "PERSONA.md"), "You are Ada.\n");
});

test("a dropped index fails by name, and doctor does not make it", async () => {
  await inDatabase(namespace, (db) => db.collection("turns").dropIndex("one_turn"));
  for (const look of [await doctor(), await doctor()]) {
    assert.is(look.code, 1);
    assert.equal([look.of("mongodb indexes")[0]?.code, look.of("mongodb indexes")[0]?.detail], ["index_missing", "turns lacks one_turn"]);
    assert.is(look.status("sessions"), "skipped");
  }
});

test.run();
