/** What a send and a turn ask of Redis and MongoDB: counted where it goes out, and bounded. ARCHITECTURE.md gives each a reason. */
import { createHash } from "node:crypto";
import { readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { MongoClient } from "mongodb";
import { ownRedis } from "../../services/launcher.ts";
import { defineBot, Headfast, type RunningWorker, scriptedModel, startWorker } from "../../src/index.ts";
import { silentLogger } from "../../src/main.ts";
import { shelfScript } from "../../src/queues/mailbox-scripts.ts";
import { openMongoStore } from "../../src/store/store.ts";
import { realSystem } from "../../src/system.ts";
import { type Commands, countedMongo, RedisMonitor, tally } from "../support/rig/counted.ts";
import { dropDatabases, until } from "../support/rig/rig.ts";
import { mongoUrl, uniqueName } from "../support/services.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("round trips", { timeoutMs: 60_000 });

/** What one send or turn may ask for. `mongo`: each waits for the one before, or runs beside it. */
interface Bill {
  redis: Commands;
  mongo: Commands;
}

/** By time, not by turn: locks, stalls, the reconciler, marks that are flushed in bulk. */
const byTime =
  /^(script (extendLocks?|moveStalledJobsToWait)|time|info|hset|client|find turns \(open\)|update turns|update session_ownership \(hints\))$/;

async function scriptNames(): Promise<Map<string, string>> {
  const names = new Map([[sha1(shelfScript), "shelf (ours)"]]);
  const folder = join(dirname(createRequire(import.meta.url).resolve("bullmq")), "..", "esm", "scripts");
  for (const file of readdirSync(folder).filter((name) => /-\d+\.js$/.test(name))) {
    const module = (await import(pathToFileURL(join(folder, file)).href)) as Record<string, { name: string; content: string }>;
    for (const script of Object.values(module)) names.set(sha1(script.content), script.name);
  }
  return names;
}

function sha1(text: string): string {
  return createHash("sha1").update(text).digest("hex");
}

class Meter {
  readonly namespace: string;
  readonly #redis: string;
  readonly #monitor: RedisMonitor;
  readonly #looker = new MongoClient(mongoUrl());
  readonly #host: Headfast;
  readonly #hostMongo: Commands;
  readonly #closers: (() => Promise<void>)[] = [];
  #workerMongo: Commands = [];
  #said = 0;

  private constructor(redis: string, namespace: string, monitor: RedisMonitor, host: Headfast, hostMongo: Commands) {
    this.#redis = redis;
    this.namespace = namespace;
    this.#monitor = monitor;
    this.#host = host;
    this.#hostMongo = hostMongo;
  }

  static async open(redis: string): Promise<Meter> {
    const namespace = uniqueName("trips");
    const { client, commands } = countedMongo(mongoUrl());
    const store = await openMongoStore({ client, database: namespace, system: realSystem, log: silentLogger });
    const host = await Headfast.connect({ redis, mongo: mongoUrl(), namespace, parts: { store } });
    const meter = new Meter(redis, namespace, await RedisMonitor.open(redis, await scriptNames()), host, commands);
    meter.#closers.push(
      () => host.close(),
      () => client.close(),
      () => meter.#looker.close(),
      async () => meter.#monitor.close(),
      () => dropDatabases(mongoUrl(), [namespace]),
    );
    return meter;
  }

  async worker(): Promise<RunningWorker> {
    const { client, commands } = countedMongo(mongoUrl());
    const store = await openMongoStore({ client, database: this.namespace, system: realSystem, log: silentLogger });
    const bots = [defineBot({ name: "ada", model: scriptedModel(() => "yes"), rolePrompts: ["You answer."] })];
    const worker = await startWorker({ redis: this.#redis, mongo: mongoUrl(), namespace: this.namespace, bots, parts: { store } });
    this.#workerMongo = commands;
    await this.#quiet();
    let closing: Promise<void> | undefined;
    const close = (): Promise<void> => {
      closing ??= worker.close(0).then(() => client.close());
      return closing;
    };
    this.#closers.unshift(close);
    return { counts: worker.counts, close };
  }

  /** What one send asks for; without a worker that takes it up at once. */
  async send(session: string): Promise<Bill> {
    const marks = this.#marks();
    await this.#sendOne(session);
    await this.#quiet();
    return this.#since(marks, this.#hostMongo, marks.host);
  }

  /** What a turn asks for from its send to the end of its activation, the send taken off. */
  async turn(session: string, send: Bill): Promise<Bill> {
    const marks = this.#marks();
    await this.#sendOne(session);
    await this.#ended(session, this.#said);
    await this.#quiet();
    const all = this.#since(marks, this.#workerMongo, marks.worker);
    return { mongo: all.mongo, redis: without(all.redis, send.redis) };
  }

  async close(): Promise<void> {
    for (const close of this.#closers) await close();
  }

  async #sendOne(session: string): Promise<void> {
    this.#said += 1;
    await this.#host.turns.send({ bot: "ada", session, turnId: `t${this.#said}`, input: "a question" });
  }

  #ended(session: string, said: number): Promise<void> {
    const log = this.#looker.db(this.namespace).collection("transcript");
    return until(
      "the turn is in the log",
      async () => (await log.findOne({ session, turn: { $exists: true }, "turn.turn_id": `t${said}` })) !== null,
    );
  }

  #marks(): { redis: number; host: number; worker: number } {
    return { redis: this.#monitor.commands.length, host: this.#hostMongo.length, worker: this.#workerMongo.length };
  }

  #since(marks: { redis: number }, mongo: Commands, from: number): Bill {
    const counted = (commands: Commands): Commands => commands.filter((command) => !byTime.test(command));
    return { redis: counted(this.#monitor.commands.slice(marks.redis)), mongo: counted(mongo.slice(from)) };
  }

  /** Nothing was sent for a while but what is sent by time. */
  async #quiet(): Promise<void> {
    let before = -1;
    let since = performance.now();
    await until("nothing is sent", () => {
      const now = this.#monitor.commands.length + this.#hostMongo.length + this.#workerMongo.length;
      if (now !== before) since = performance.now();
      before = now;
      return performance.now() - since > 250;
    });
  }
}

/** The commands that are left when each of `taken` is taken off once. */
function without(commands: Commands, taken: Commands): Commands {
  const left = [...commands];
  for (const command of taken) {
    const at = left.indexOf(command);
    if (at >= 0) left.splice(at, 1);
  }
  return left;
}

/** The bill in the middle: what is sent by chance beside a turn shows in few of them. */
function middle(bills: readonly Bill[]): Bill {
  const sorted = [...bills].sort((a, b) => a.redis.length + a.mongo.length - b.redis.length - b.mongo.length);
  return sorted[sorted.length >> 1] as Bill;
}

function show(what: string, { redis, mongo }: Bill): void {
  const text = (commands: Commands): string => [...tally(commands)].map(([name, n]) => (n === 1 ? name : `${n} × ${name}`)).join(", ");
  console.log(`  ${what}: Redis ${redis.length} (${text(redis)}); MongoDB ${mongo.length} (${text(mongo)})`);
}

function within(what: string, bill: Bill, most: { redis: number; mongo: number }): void {
  show(what, bill);
  assert.ok(bill.redis.length <= most.redis, `${what}: ${bill.redis.length} commands to Redis, at most ${most.redis} are accounted for`);
  assert.ok(bill.mongo.length <= most.mongo, `${what}: ${bill.mongo.length} commands to MongoDB, at most ${most.mongo} are accounted for`);
}

test("a send, a first, a warm and a cold turn ask for no more than is accounted for", async () => {
  const redis = await ownRedis();
  try {
    const meter = await Meter.open(redis.url);
    try {
      await measure(meter);
    } finally {
      await meter.close();
    }
  } finally {
    await redis.stop();
  }
});

async function measure(meter: Meter): Promise<void> {
  const times = async (count: number, bill: (n: number) => Promise<Bill>): Promise<Bill> => {
    const bills: Bill[] = [];
    for (let n = 0; n < count; n += 1) bills.push(await bill(n));
    return middle(bills);
  };
  const firstSend = await times(3, (n) => meter.send(`fresh ${n}`));
  const send = await times(5, () => meter.send("fresh 0"));
  within("the first send of a session", firstSend, { redis: 2, mongo: 3 });
  within("a send", send, { redis: 2, mongo: 2 });

  const one = await meter.worker();
  const first = await times(3, (n) => meter.turn(`new ${n}`, firstSend));
  within("a session's first turn", first, { redis: 11, mongo: 7 });
  within("a warm turn", await times(7, () => meter.turn("new 0", send)), { redis: 11, mongo: 4 });
  await one.close();

  const two = await meter.worker();
  within("a cold turn", await times(3, (n) => meter.turn(`new ${n}`, send)), { redis: 11, mongo: 6 });
  await two.close();
}

test.run();
