import { readFile } from "node:fs/promises";
import { planOf } from "../../src/testing/simulator/plan.ts";
import { simulate } from "../../src/testing/simulator/simulate.ts";
import { assert, suite } from "../support/suite.ts";
import { plantedFaults } from "./planted/faults.ts";

const long = process.env.HEADFAST_LONG === "1";
const seeds = long ? 20_000 : 250;
const test = suite("simulator", { timeoutMs: long ? 30 * 60_000 : 100_000 });

test(`I1 to I13 hold under ${seeds} seeds of interleavings and faults`, async () => {
  let entries = 0;
  let calls = 0;
  for (let seed = 1; seed <= seeds; seed += 1) {
    const result = await simulate(seed);
    if (result.violation !== null) throw new Error(`seed ${seed}: ${result.violation.message}\n${result.trace.slice(-200).join("\n")}`);
    entries += result.entries;
    calls += result.calls;
  }
  assert.ok(entries > seeds * 3 && calls > seeds * 3, `${entries} entries and ${calls} calls: the runs did something`);
});

test("the same seed gives the same run, to the last operation", async () => {
  for (const seed of [3, 17, 85]) {
    const first = await simulate(seed);
    const second = await simulate(seed);
    assert.equal(second.trace, first.trace);
    assert.ok(first.trace.length > 50);
  }
});

test("a plan can be pinned: a calm world spends no attempt and repeats no call", async () => {
  const calm = {
    failBefore: 0,
    loseAnswer: 0,
    tentative: 0,
    failover: 0,
    readFails: 0,
    crash: 0,
    modelFails: 0,
    modelLater: 0,
    modelRefuses: 0,
    modelHangs: 0,
    killer: false,
    toolSteps: 0,
    actions: {},
    actionsMax: 0,
    workers: 2,
    sessions: ["s"],
    turnsPerSession: 4,
  };
  const result = await simulate(1, calm);
  assert.is(result.violation, null);
  assert.is(result.calls, 5, "four turns and the last one in calm weather");
  assert.is(result.entries, 5);
});

test("at least 20 planted faults fit the code as it stands, each in one place", async () => {
  assert.ok(plantedFaults.length >= 20);
  for (const { file, find, replace, what } of plantedFaults) {
    const text = await readFile(new URL(`../../${file}`, import.meta.url), "utf8");
    assert.is(text.split(find).length, 2, `${what}: its text stands once in ${file}`);
    assert.is.not(find, replace);
  }
});

test("plans differ from seed to seed", () => {
  const plans = Array.from({ length: 50 }, (_, seed) => JSON.stringify({ ...planOf(seed), seed: 0 }));
  assert.is(new Set(plans).size, plans.length);
});

test.run();
