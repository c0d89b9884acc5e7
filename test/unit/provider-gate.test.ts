/** The gate of a provider's limit: no call while a window lasts, then one alone, then all (I12). */
import { laterMs, ProviderGate } from "../../src/actors/provider-gate.ts";
import { HeadfastError } from "../../src/domain/errors.ts";
import { limits } from "../../src/domain/limits.ts";
import { fail, later } from "../../src/models/script.ts";
import { fakeClock } from "../../src/testing/fake-clock.ts";
import { refusal } from "../support/refusal.ts";
import { gate as opening } from "../support/scenario.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("provider gate");

test("laterMs: what a provider may ask becomes a wait between half a second and a quarter of an hour", () => {
  const cases: [number | undefined, number][] = [
    [undefined, limits.laterMsDefault],
    [Number.NaN, limits.laterMsDefault],
    [Number.POSITIVE_INFINITY, limits.laterMsDefault],
    [-1, limits.laterMsDefault],
    [0, limits.outageMsMin],
    [1, limits.outageMsMin],
    [3_000, 3_000],
    [6 * 3_600_000, limits.laterMsMax],
  ];
  for (const [asked, ms] of cases) assert.is(laterMs(asked), ms, String(asked));
});

test("after a later nobody calls until the window is over, then one probe, and on its success all", async () => {
  const clock = fakeClock();
  const gate = new ProviderGate(clock);
  let calls = 0;
  const ok = async () => {
    calls += 1;
    return "ok";
  };
  assert.is((await refusal(gate.pass("key", async () => Promise.reject(later(10_000))))).retryAfterMs, 10_000);
  await clock.advance(9_000);
  const early = await refusal(gate.pass("key", ok));
  assert.equal([early.code, early.kind, early.retryAfterMs, calls], ["model_later", "later", 1_000, 0]);
  assert.is(await gate.pass("another key", ok), "ok", "other keys are not concerned");

  await clock.advance(1_000);
  const answer = opening();
  const probe = gate.pass("key", () => answer.opened.then(ok));
  assert.is((await refusal(gate.pass("key", ok))).code, "model_later", "beside the probe nobody calls");
  answer.open();
  await probe;
  assert.equal(await Promise.all([gate.pass("key", ok), gate.pass("key", ok)]), ["ok", "ok"]);
});

test("a probe that is told later again opens the next window; one that fails otherwise ends it", async () => {
  const clock = fakeClock();
  const gate = new ProviderGate(clock);
  const refuse = (ms: number) => refusal(gate.pass("key", async () => Promise.reject(later(ms))));
  await refuse(1_000);
  await clock.advance(1_000);
  await refuse(5_000);
  await clock.advance(4_999);
  assert.is((await refusal(gate.pass("key", async () => "ok"))).retryAfterMs, limits.outageMsMin);
  await clock.advance(1);
  assert.is((await refusal(gate.pass("key", async () => Promise.reject(fail("broken"))))).code, "model_failed");
  assert.is(await gate.pass("key", async () => "ok"), "ok");
});

test("the provider's own error is kept as the cause, and other errors pass as they are", async () => {
  const gate = new ProviderGate(fakeClock());
  const mine = new HeadfastError("model_later", "429", { data: { status: 429 } });
  const told = await refusal(gate.pass("a", () => Promise.reject(mine)));
  assert.equal([told.cause, told.data, told.retryAfterMs], [mine, { status: 429 }, limits.laterMsDefault]);
  const other = new TypeError("a bug");
  assert.is(await refusal(gate.pass("b", () => Promise.reject(other))), other as unknown);
});

test.run();
