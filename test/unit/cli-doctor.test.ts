import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { checkBots } from "../../src/cli/doctor-bots.ts";
import type { Check } from "../../src/cli/doctor-check.ts";
import { gitCheck, mongoChecks, redisChecks } from "../../src/cli/doctor-services.ts";
import { waitingCheck } from "../../src/cli/doctor-sessions.ts";
import type { WaitingSession } from "../../src/host/waiting.ts";
import { defineBot } from "../../src/main.ts";
import { scriptedModel } from "../../src/models/scripted.ts";
import { git, temporaryFolder } from "../support/git.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("cli doctor");

const redis = { version: "7.2.1", evictionPolicy: "noeviction", appendOnly: true, skewMs: 3 };
const mongo = {
  version: "8.0.1",
  wireVersion: 25,
  standIn: false,
  kind: "replica set" as const,
  fresh: false,
  indexProblems: [],
  shards: 4,
};

function statusOf(checks: readonly Check[], name: string): string | undefined {
  return checks.find(({ check }) => check === name)?.status;
}

test("a fit Redis and MongoDB are ok throughout", () => {
  assert.ok([...redisChecks(redis), ...mongoChecks(mongo, "headfast")].every(({ status }) => status === "ok"));
});

test("each fault of Redis is told under its own name", () => {
  const faults: [Partial<typeof redis>, string, string][] = [
    [{ version: "6.0.16" }, "redis", "failed"],
    [{ evictionPolicy: "allkeys-lru" }, "redis eviction policy", "failed"],
    [{ evictionPolicy: "" }, "redis eviction policy", "degraded"],
    [{ appendOnly: false }, "redis persistence", "degraded"],
    [{ skewMs: -6_000 }, "redis clock", "failed"],
  ];
  for (const [fault, name, status] of faults) {
    const checks = redisChecks({ ...redis, ...fault });
    assert.is(statusOf(checks, name), status, name);
    assert.is(checks.filter((check) => check.status !== "ok").length, 1, name);
    assert.ok(checks.find(({ check }) => check === name)?.advice, `${name} says what to do`);
  }
});

test("each fault of MongoDB is told under its own name", () => {
  const problem = { collection: "turns", name: "one_turn", key: { session: 1 as const }, unique: true, advice: "start once" };
  const faults: [Partial<Parameters<typeof mongoChecks>[0]>, string, string][] = [
    [{ wireVersion: 8 }, "mongodb", "failed"],
    [{ standIn: true }, "mongodb", "degraded"],
    [{ kind: "standalone" }, "mongodb", "degraded"],
    [{ indexProblems: [problem] }, "mongodb indexes", "failed"],
  ];
  for (const [fault, name, status] of faults) assert.is(statusOf(mongoChecks({ ...mongo, ...fault }, "n"), name), status, name);
  assert.is(statusOf(mongoChecks({ ...mongo, fresh: true, shards: null }, "n"), "mongodb indexes"), "ok");
});

test("git is read from what it says", () => {
  assert.is(gitCheck("git version 2.39.5\n").status, "ok");
  assert.is(gitCheck("git version 2.40.1 (Apple Git-145)\n").status, "ok");
  assert.is(gitCheck("git version 2.30.9\n").status, "failed");
  assert.is(gitCheck("nonsense").status, "failed");
});

test("a session that waits is told with its reason", () => {
  const one: WaitingSession = {
    session: "tg:42",
    bot: "ada",
    turnId: "1",
    acceptedAt: "2026-12-01T10:00:00.000Z",
    attemptsSpent: 0,
    lastError: null,
    dueAt: null,
    running: false,
    parked: false,
    unowned: false,
  };
  const detail = (patch: Partial<WaitingSession>, activation: boolean | undefined = true): string =>
    waitingCheck({ ...one, ...patch }, activation, 1_000).detail;
  assert.match(detail({}), "its activation waits");
  assert.match(detail({}, false), "Redis knows no activation");
  assert.match(waitingCheck(one, undefined, 1_000).detail, "Redis does not answer");
  assert.match(detail({ parked: true }), "parked");
  assert.match(detail({ unowned: true }), "ownership document is missing");
  assert.match(detail({ running: true }), "recorded steps");
  assert.match(
    detail({ dueAt: 61_000, attemptsSpent: 2, lastError: "model_failed" }),
    /2 attempts spent, last model_failed; it is tried again in 60 s/,
  );
  assert.match(waitingCheck({ ...one, session: "-1 x", parked: true }, true, 0).advice ?? "", '--session "-1 x"');
});

test("bots of one repository share its lines; a persona that is no UTF-8 is told with what became of it", async () => {
  const folder = temporaryFolder("doctor-bots");
  try {
    git(folder.path, "init", "-q", "-b", "main");
    writeFileSync(join(folder.path, "PERSONA.md"), "You are Ada.\n");
    const bot = (name: string) => defineBot({ name, model: scriptedModel(), memory: folder.path });
    const bots = [bot("ada"), bot("bob"), defineBot({ name: "eve", model: scriptedModel() })];
    const told = async () => (await checkBots(bots)).map(({ check, status }) => [check, status]);
    const none = ["memory of eve", "ok"];
    assert.equal(await told(), [["memory of ada, bob", "ok"], ["persona of ada, bob", "ok"], none]);
    writeFileSync(join(folder.path, "PERSONA.md"), Buffer.from([0x50, 0xff, 0xfe, 0x00, 0x51]));
    assert.equal(await told(), [["memory of ada, bob", "ok"], ["persona of ada, bob", "degraded"], none]);
    const [, persona] = await checkBots(bots);
    assert.match(persona?.detail ?? "", /not UTF-8; each invalid sequence became U\+FFFD; the body holds NUL/);
  } finally {
    folder.remove();
  }
});

test.run();
