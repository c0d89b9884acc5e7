// The launcher's pure parts: the order of preference, what is said when nothing serves, and what makes a server unfit.
import { mkdir, mkdtemp, readdir, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { madeOnce, recentFailure, rememberFailure } from "../../services/cache.ts";
import { redisInfoFault } from "../../services/check.ts";
import { withoutPassword } from "../../services/launcher.ts";
import { mongoWays } from "../../services/mongo.ts";
import { type Found, firstThatServes, NoServerError, type Refusal, type Way } from "../../services/order.ts";
import { redisWays } from "../../services/redis.ts";
import { assert, suite } from "../support/suite.ts";

const found = (origin: string): Found => ({ url: "redis://127.0.0.1:1", origin, started: false, stop: async () => undefined });
const way = (name: string, result: Found | Refusal | Error, asked: string[] = []): Way<Found> => ({
  name,
  attempt: async () => {
    asked.push(name);
    if (result instanceof Error) throw result;
    return result;
  },
});

const order = suite("services: order of preference");

order("Redis and MongoDB are looked for in the order that the design gives", () => {
  const names = (ways: readonly { name: string }[]) => ways.map((each) => each.name);
  assert.equal(names(redisWays(() => undefined)), [
    "HEADFAST_REDIS_URL",
    "a server listening on 127.0.0.1:6379",
    "docker compose",
    "redis-server on the PATH",
    "Debian's redis-server package",
  ]);
  assert.equal(names(mongoWays(() => undefined)), [
    "HEADFAST_MONGO_URL",
    "a server listening on 127.0.0.1:27017",
    "docker compose",
    "mongod on the PATH",
    "mongod from mongodb-memory-server",
    "the MongoDB stand-in",
  ]);
});

order("the first way that serves is taken and none after it is tried", async () => {
  const asked: string[] = [];
  const ways = [way("a", { reason: "not set" }, asked), way("b", found("b"), asked), way("c", found("c"), asked)];
  const lines: string[] = [];
  const server = await firstThatServes("Redis", ways, "install it", (line) => lines.push(line));
  assert.is(server.origin, "b");
  assert.equal(asked, ["a", "b"]);
  assert.equal(lines, [], "that a variable is not set is no news");
});

order("a server that is there but unfit is passed over with the reason; so is a way that fails", async () => {
  const ways = [way("a", { reason: "it evicts", passedOver: true }), way("b", new Error("apt is broken")), way("c", found("c"))];
  const lines: string[] = [];
  await firstThatServes("Redis", ways, "install it", (line) => lines.push(line));
  assert.equal(lines, ["Redis: passing over a: it evicts", "Redis: passing over b: apt is broken"]);
});

order("when nothing serves, one error says what was tried, in order, and what to install", async () => {
  const ways = [way("a", { reason: "not set" }), way("b", new Error("apt is broken"))];
  const error = await firstThatServes("Redis", ways, "install it", () => undefined).then(
    () => undefined,
    (thrown: unknown) => thrown as NoServerError,
  );
  assert.instance(error, NoServerError);
  assert.is(error?.code, "NO_SERVER");
  assert.is(error?.message, "No Redis to use. Tried, in this order:\n  - a: not set\n  - b: apt is broken\ninstall it");
});

order.run();

const fitness = suite("services: fitness of a found Redis");
const info = (version: string, policy: string) => `# Server\r\nredis_version:${version}\r\n# Memory\r\nmaxmemory_policy:${policy}\r\n`;

fitness("6.2 and newer with noeviction will do", () => {
  for (const version of ["6.2.0", "7.0.15", "10.0.1"]) assert.is(redisInfoFault(info(version, "noeviction")), undefined);
});

fitness("an older one, and one that evicts, will not, and the reason names it", () => {
  assert.match(redisInfoFault(info("6.0.16", "noeviction")) ?? "", /6\.0\.16/);
  assert.match(redisInfoFault(info("5.9.9", "noeviction")) ?? "", /5\.9\.9/);
  assert.match(redisInfoFault(info("7.2.0", "allkeys-lru")) ?? "", /allkeys-lru/);
  assert.ok(redisInfoFault("nothing known"));
});

fitness("a URL is shown without its password", () => {
  assert.is(withoutPassword("redis://user:secret@example.test:6379/1"), "redis://example.test:6379/1");
  assert.is(withoutPassword("redis://127.0.0.1:6379"), "redis://127.0.0.1:6379");
});

fitness.run();

const cache = suite("services: cache");
let home = "";
let before: string | undefined;

cache.before.each(async () => {
  before = process.env.XDG_CACHE_HOME;
  home = await mkdtemp(join(tmpdir(), "headfast-cache-test-"));
  process.env.XDG_CACHE_HOME = home;
});

cache.after.each(async () => {
  if (before === undefined) delete process.env.XDG_CACHE_HOME;
  else process.env.XDG_CACHE_HOME = before;
  await rm(home, { recursive: true, force: true });
});

cache("two at the same time make a thing once, and both get it", async () => {
  let made = 0;
  const make = () =>
    madeOnce("thing", async (folder) => {
      made++;
      await writeFile(join(folder, "file"), "whole");
    });
  const [one, two] = await Promise.all([make(), make()]);
  assert.is(one, two);
  assert.is(made, 1);
  assert.is(await readFile(join(one, "file"), "utf8"), "whole");
});

cache("a thing that failed half-way leaves nothing, and is made anew next time", async () => {
  const broken = madeOnce("thing", async (folder) => {
    await writeFile(join(folder, "file"), "half");
    throw new Error("no more disk");
  });
  assert.is(await broken.catch((error: Error) => error.message), "no more disk");
  assert.equal(await readdir(join(home, "headfast")), []);
  assert.equal(await readdir(await madeOnce("thing", async () => undefined)), []);
});

cache("a lock and a draft left by a process that is gone do not stand in the way", async () => {
  const gone = 2 ** 22 + 1; // no process of this machine has so high an id
  await madeOnce("other", async () => undefined);
  await mkdir(join(home, "headfast", "thing.lock"));
  await writeFile(join(home, "headfast", "thing.lock", "pid"), String(gone));
  await mkdir(join(home, "headfast", `thing.${gone}.new`));
  await madeOnce("thing", async () => undefined);
  assert.equal((await readdir(join(home, "headfast"))).sort(), ["other", "thing"]);
});

cache("a failure is remembered for as long as asked, not longer", async () => {
  assert.is(await recentFailure("mongod", 1000), undefined);
  await rememberFailure("mongod", "no way out");
  assert.is(await recentFailure("mongod", 60_000), "no way out");
  const hourAgo = new Date(Date.now() - 3_600_000);
  await utimes(join(home, "headfast", "mongod.failed"), hourAgo, hourAgo);
  assert.is(await recentFailure("mongod", 60_000), undefined);
});

cache.run();
