// The launcher with real servers: they die with their parent, keep what they acknowledged, and what was only found is left alone.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { access } from "node:fs/promises";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import { MongoClient } from "mongodb";
import { isAlive } from "../../services/cache.ts";
import { findOrStart, ownMongo, ownRedis } from "../../services/launcher.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("launcher", { timeoutMs: 100_000 });

const root = fileURLToPath(new URL("../../", import.meta.url));
const launcher = new URL("../../services/launcher.ts", import.meta.url).href;
const dieMs = 8_000;

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );

/** Waits until a condition holds, within a limit; there is no signal from a process that is not our child. */
async function eventually(what: string, holds: () => Promise<boolean> | boolean): Promise<void> {
  const deadline = Date.now() + dieMs;
  while (!(await holds())) {
    if (Date.now() > deadline) assert.unreachable(`${what} within ${dieMs} ms`);
    await sleep(50);
  }
}

async function lineOf(child: ChildProcess, matching: RegExp): Promise<string> {
  assert.ok(child.stdout);
  try {
    for await (const line of createInterface({ input: child.stdout })) if (matching.test(line)) return line;
    throw new Error(`the process ended without a line like ${matching}`);
  } finally {
    child.stdout.destroy(); // a process left over must not keep the test waiting
  }
}

async function withRedis<T>(url: string, use: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(url, { maxRetriesPerRequest: 1 });
  try {
    return await use(redis);
  } finally {
    redis.disconnect();
  }
}

async function withMongo<T>(url: string, use: (client: MongoClient) => Promise<T>): Promise<T> {
  const client = new MongoClient(url, {
    writeConcern: { w: "majority" },
    readConcern: { level: "majority" },
    serverSelectionTimeoutMS: 3_000,
  });
  try {
    return await use(client);
  } finally {
    await client.close();
  }
}

test("servers and their folders go when the process that started them is killed, frozen ones too", async () => {
  const script = `
    const { ownRedis, ownMongo } = await import(${JSON.stringify(launcher)});
    const servers = [await ownRedis({ appendOnly: true }), await ownMongo({ durable: true }), await ownRedis()];
    await servers[2].kill("SIGSTOP");
    console.log("SERVERS " + JSON.stringify(servers.map(({ pid, dir }) => ({ pid, dir }))));
    setInterval(() => undefined, 1000);`;
  const parent = spawn(process.execPath, ["--import", "tsx", "--input-type=module", "-e", script], {
    cwd: root,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const line = await lineOf(parent, /^SERVERS /);
  const servers = JSON.parse(line.slice("SERVERS ".length)) as { pid: number; dir: string }[];
  for (const { pid, dir } of servers) assert.ok(isAlive(pid) && (await exists(dir)), `${pid} runs in ${dir}`);
  parent.kill("SIGKILL");
  await once(parent, "exit");
  for (const { pid, dir } of servers) {
    await eventually(`server ${pid} is gone`, () => !isAlive(pid));
    await eventually(`${dir} is gone`, async () => !(await exists(dir)));
  }
});

test("a process that forgets to stop its servers still ends by itself, and they with it", async () => {
  const script = `
    const { ownRedis } = await import(${JSON.stringify(launcher)});
    console.log("PID " + (await ownRedis()).pid);`;
  const parent = spawn(process.execPath, ["--import", "tsx", "--input-type=module", "-e", script], {
    cwd: root,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(parent, "exit");
  const pid = Number((await lineOf(parent, /^PID /)).slice("PID ".length));
  assert.equal((await ended)[0], 0);
  await eventually(`server ${pid} is gone`, () => !isAlive(pid));
});

test("a Redis of one's own evicts nothing and, append-only, has all that it acknowledged after SIGKILL and restart", async () => {
  const server = await ownRedis({ appendOnly: true });
  try {
    await withRedis(server.url, async (redis) => {
      assert.equal(await redis.config("GET", "maxmemory-policy"), ["maxmemory-policy", "noeviction"]);
      await Promise.all(Array.from({ length: 500 }, (_, i) => redis.set(`key:${i}`, i)));
    });
    const before = server.pid;
    await server.kill();
    assert.not.ok(isAlive(before));
    await server.restart();
    assert.is.not(server.pid, before);
    await withRedis(server.url, async (redis) => {
      assert.is(await redis.dbsize(), 500);
      assert.is(await redis.get("key:499"), "499");
    });
  } finally {
    await server.stop();
    await server.stop();
  }
  assert.not.ok(await exists(server.dir));
});

test("a Redis without append-only is empty after a restart on the same port", async () => {
  const server = await ownRedis({ config: { maxmemory: "64mb" } });
  try {
    await withRedis(server.url, (redis) => redis.set("key", "value"));
    const { url } = server;
    await server.restart();
    assert.is(server.url, url);
    await withRedis(url, async (redis) => {
      assert.is(await redis.dbsize(), 0);
      assert.equal(await redis.config("GET", "maxmemory"), ["maxmemory", String(64 * 1024 * 1024)]);
    });
  } finally {
    await server.stop();
  }
});

test("a durable MongoDB of one's own has every acknowledged write after SIGKILL, three times over, and its unique indexes still hold", async () => {
  const server = await ownMongo({ durable: true });
  const acknowledged = new Map<string, number>();
  try {
    for (let round = 0; round < 3; round++) {
      await withMongo(server.url, async (client) => {
        const collection = client.db("launcher_test").collection<{ _id: string; key: string; v: number }>("writes");
        await collection.createIndex({ key: 1 }, { unique: true });
        let writes = 0;
        let enough: () => void = () => undefined;
        const busy = new Promise<void>((resolve) => {
          enough = resolve;
        });
        const writers = Array.from({ length: 10 }, async (_, writer) => {
          // Until the server is killed under it: the driver's error ends the writer.
          for (let i = 0; ; i++) {
            const _id = `${round}:${writer}:${i}`;
            try {
              await collection.insertOne({ _id, key: _id, v: 0 });
              acknowledged.set(_id, 0);
              await collection.updateOne({ _id }, { $set: { v: 1 } });
              acknowledged.set(_id, 1);
            } catch {
              return;
            }
            if (++writes === 200) enough();
          }
        });
        await busy;
        await server.kill();
        await Promise.all(writers);
      });
      await server.restart();
      await withMongo(server.url, async (client) => {
        const collection = client.db("launcher_test").collection<{ _id: string; key: string; v: number }>("writes");
        const stored = new Map((await collection.find().toArray()).map(({ _id, v }) => [_id, v]));
        const lost = [...acknowledged].filter(([id, v]) => (stored.get(id) ?? -1) < v);
        assert.equal(lost, [], `${lost.length} of ${acknowledged.size} lost in round ${round}`);
        const code = await collection.insertOne({ _id: `again:${round}`, key: "0:0:0", v: 0 }).then(
          () => 0,
          (error: { code: number }) => error.code,
        );
        assert.is(code, 11000);
      });
    }
  } finally {
    await server.stop();
  }
});

test("guarded updates have one winner, increments all count, unique keys collide, and counts are right", async () => {
  const server = await ownMongo();
  try {
    await withMongo(server.url, async (client) => {
      const collection = client.db("launcher_test").collection<{ _id: string; [field: string]: unknown }>("races");
      await collection.createIndex({ session: 1, turn_id: 1, generation: 1 }, { unique: true });
      await collection.insertMany([
        { _id: "guard", session: "guard" },
        { _id: "count", session: "count", n: 0 },
      ]);
      const claims = await Promise.all(
        Array.from({ length: 50 }, (_, i) =>
          collection.findOneAndUpdate({ _id: "guard", owner: { $exists: false } }, { $set: { owner: i } }),
        ),
      );
      assert.is(claims.filter(Boolean).length, 1);
      const counters = client.db("launcher_test").collection<{ _id: string; n: number }>("races");
      await Promise.all(Array.from({ length: 200 }, () => counters.updateOne({ _id: "count" }, { $inc: { n: 1 } })));
      assert.is((await counters.findOne({ _id: "count" }))?.n, 200);

      const codeOf = (write: Promise<unknown>) =>
        write.then(
          () => undefined,
          (error: { code: number }) => error.code,
        );
      const turn = { session: "s", turn_id: "t", generation: 0 };
      assert.is(await codeOf(collection.insertOne({ _id: "one", ...turn })), undefined);
      assert.is(await codeOf(collection.insertOne({ _id: "two", ...turn })), 11000);
      assert.is(await codeOf(collection.findOneAndUpdate({ _id: "guard", owner: "rival" }, { $set: { x: 1 } }, { upsert: true })), 11000);
      const twice = [
        { _id: "many", session: "many" },
        { _id: "many", session: "again" },
        { _id: "more", session: "more" },
      ];
      const partly = await collection
        .insertMany(twice, { ordered: false })
        .catch((error: { result: { insertedCount: number } }) => error.result);
      assert.is(partly.insertedCount, 2);
    });
  } finally {
    await server.stop();
  }
});

test("dropping a database leaves one whose name begins with its name", async () => {
  const server = await ownMongo();
  try {
    await withMongo(server.url, async (client) => {
      for (const name of ["hf_1", "hf_10"]) await client.db(name).collection("things").insertOne({ name });
      await client.db("hf_1").dropDatabase();
      assert.is(await client.db("hf_1").collection("things").countDocuments(), 0);
      assert.is(await client.db("hf_10").collection("things").countDocuments({ name: "hf_10" }), 1);
    });
  } finally {
    await server.stop();
  }
});

test("a server named in the environment is used and never stopped; an unfit one is passed over with the reason", async () => {
  const [fit, unfit] = await Promise.all([ownRedis(), ownRedis({ config: { "maxmemory-policy": "allkeys-lru" } })]);
  const before = process.env.HEADFAST_REDIS_URL;
  const lines: string[] = [];
  const find = (url: string) => {
    process.env.HEADFAST_REDIS_URL = url;
    return findOrStart({ mongo: false, log: (line) => lines.push(line) });
  };
  try {
    const first = await find(fit.url);
    assert.equal(first.redis, { url: fit.url, origin: "HEADFAST_REDIS_URL", started: false });
    await first.stop();
    assert.is(await withRedis(fit.url, (redis) => redis.ping()), "PONG");

    const second = await find(unfit.url);
    assert.is.not(second.redis.url, unfit.url);
    assert.ok(
      lines.some((line) => line.includes("passing over HEADFAST_REDIS_URL") && line.includes("allkeys-lru")),
      lines.join("\n"),
    );
    await second.stop();
    assert.is(await withRedis(unfit.url, (redis) => redis.ping()), "PONG");
  } finally {
    if (before === undefined) delete process.env.HEADFAST_REDIS_URL;
    else process.env.HEADFAST_REDIS_URL = before;
    await Promise.all([fit.stop(), unfit.stop()]);
  }
});

test("the command line gives a command its URLs, and its exit code and signals through", async () => {
  const cli = (...command: string[]) =>
    spawn(process.execPath, ["--import", "tsx", "services/cli.ts", "run", "--", ...command], {
      cwd: root,
      stdio: ["ignore", "pipe", "ignore"],
    });

  const telling = cli("sh", "-c", 'echo "URLS $HEADFAST_REDIS_URL $HEADFAST_MONGO_URL"; exit 7');
  const ended = once(telling, "exit");
  assert.match(await lineOf(telling, /^URLS/), /^URLS redis:\/\/\S+ mongodb:\/\/\S+$/);
  assert.is((await ended)[0], 7);

  const waiting = cli("sh", "-c", "trap 'exit 9' TERM; echo READY; while :; do sleep 0.1; done");
  const over = once(waiting, "exit");
  await lineOf(waiting, /^READY$/);
  waiting.kill("SIGTERM");
  assert.is((await over)[0], 9);
});

test.run();
