/** `headfast worker` as a real process: how it ends. */
import { writeFileSync } from "node:fs";
import { limits } from "../../src/domain/limits.ts";
import { Headfast } from "../../src/main.ts";
import { botFolder, type RunningCli, runCli, startCli } from "../support/cli.ts";
import { dropDatabase } from "../support/mongo.ts";
import { mongoUrl, redisUrl, uniqueName } from "../support/services.ts";
import { assert, suite } from "../support/suite.ts";
import { tcpProxy } from "../support/tcp-proxy.ts";

const test = suite("cli worker", { timeoutMs: 60_000 });
const bots = botFolder("cli-worker");
const namespace = uniqueName("cliworker").slice(0, 38);
const env = { HEADFAST_REDIS_URL: redisUrl(), HEADFAST_MONGO_URL: mongoUrl(), HEADFAST_NAMESPACE: namespace };
let hf: Headfast;

test.before(async () => {
  hf = await Headfast.connect({ redis: redisUrl(), mongo: mongoUrl(), namespace });
});

test.after(async () => {
  await hf.close();
  bots.remove();
  await dropDatabase(namespace);
});

async function readyWorker(drainMs: string, redis = redisUrl()): Promise<RunningCli> {
  const worker = startCli(["worker", "--config", bots.config, "--drain-ms", drainMs], { env: { ...env, HEADFAST_REDIS_URL: redis } });
  await worker.until(/"msg":"ready"/);
  return worker;
}

/** A worker that runs a turn which does not end. */
async function hangingWorker(session: string, drainMs: string, redis = redisUrl()): Promise<RunningCli> {
  const worker = await readyWorker(drainMs, redis);
  await hf.turns.send({ bot: "strict", session, turnId: "t1", input: "wait" });
  await worker.until(/hanging/);
  return worker;
}

test("SIGTERM: nothing new is taken, what runs is drained, exit 0; the turn stays first with no attempt spent", async () => {
  const worker = await hangingWorker("s:term", "200");
  worker.child.kill("SIGTERM");
  const { code, stdout } = await worker.ended;
  assert.is(code, 0);
  const said = stdout
    .trimEnd()
    .split("\n")
    .map((line) => (JSON.parse(line) as { msg: string }).msg);
  assert.equal(
    said.filter((msg) => ["ready", "asked to stop", "draining", "stopped"].includes(msg)),
    ["ready", "asked to stop", "draining", "stopped"],
  );
  const { turn, state } = await hf.turns.get({ session: "s:term", turnId: "t1" });
  assert.equal([state, turn.attemptsSpent, turn.crashes], ["queued", 0, 0]);
  await hf.turns.cancel({ session: "s:term", turnId: "t1" });
});

/** What a busy machine may need to deliver a signal and end a process. */
const processMs = 2_000;

for (const how of ["refused", "silent"] as const) {
  test(`SIGTERM while Redis is away (${how}): exit 0 within the drain time, the grace and ${processMs} ms, also with a turn that runs`, async () => {
    const [proxy, drainMs, session] = [await tcpProxy(redisUrl()), 300, `s:${how}`];
    try {
      const busy = await hangingWorker(session, `${drainMs}`, proxy.url);
      const idle = await readyWorker(`${drainMs}`, proxy.url);
      await proxy.cut(how);
      const asked = performance.now();
      for (const { child } of [idle, busy]) child.kill("SIGTERM");
      for (const { code, signal, stdout } of await Promise.all([idle.ended, busy.ended])) {
        assert.equal([code, signal], [0, null], stdout);
        assert.match(stdout, /"msg":"stopped/);
      }
      const ms = performance.now() - asked;
      assert.ok(ms < drainMs + limits.closeGraceMs + processMs, `${ms} ms`);
    } finally {
      await proxy.close();
    }
    const { turn, state } = await hf.turns.get({ session, turnId: "t1" });
    assert.equal([state, turn.attemptsSpent, turn.crashes], ["queued", 0, 0]);
    await hf.turns.cancel({ session, turnId: "t1" });
  });
}

test("a second signal ends at once with 1", async () => {
  const worker = await hangingWorker("s:twice", "60000");
  worker.child.kill("SIGINT");
  await worker.until(/"msg":"draining"/);
  worker.child.kill("SIGTERM");
  assert.is((await worker.ended).code, 1);
});

test("SIGTERM while the config is still loading ends the worker at once with 0", async () => {
  const slow = bots.file("slow.mjs");
  writeFileSync(slow, `console.error("loading"); export const bots = () => new Promise(() => setInterval(() => undefined, 1_000));\n`);
  const worker = startCli(["worker", "--config", slow], { env });
  await worker.until(/loading/);
  worker.child.kill("SIGTERM");
  assert.is((await worker.ended).code, 0);
});

test("a worker whose code leaves a rejection unhandled says so and ends with 1", async () => {
  const config = bots.file("broken.mjs");
  writeFileSync(
    config,
    `export * from "./headfast.config.mjs";\nPromise.resolve().then(() => setTimeout(() => Promise.reject(new Error("left alone: redis://:s3cret@h")), 10));\n`,
  );
  const broken = await runCli(["worker", "--config", config], { env });
  assert.is(broken.code, 1);
  const fatal = broken.stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as { level: string; msg: string; error?: { message: string } })
    .find(({ level }) => level === "fatal");
  assert.equal([fatal?.msg, fatal?.error?.message], ["unhandled rejection", "left alone: redis://***@h"]);
  assert.not.match(broken.stdout + broken.stderr, "s3cret");
});

test.run();
