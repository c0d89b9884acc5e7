import { asHeadfastError, causeOf, HeadfastError, isHeadfastError, PrefixDriftError } from "../../src/domain/errors.ts";
import { limits } from "../../src/domain/limits.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("errors");

test("an error of another copy of the package is told by its brand, with its code and kind", async () => {
  const other = (await import(`../../src/domain/errors.ts?copy=${process.pid}`)) as typeof import("../../src/domain/errors.ts");
  assert.is.not(other.HeadfastError, HeadfastError);
  const foreign = new other.HeadfastError("model_later", "wait", { retryAfterMs: 5 });
  assert.ok(foreign instanceof HeadfastError);
  assert.ok(isHeadfastError(foreign, "model_later"));
  assert.is(asHeadfastError(foreign), foreign);
  assert.is(foreign.kind, "later");
});

test("a drift is a Headfast error, and not every Headfast error is a drift", () => {
  const drift = new PrefixDriftError("system", 7, "x");
  assert.ok(drift instanceof HeadfastError && drift instanceof PrefixDriftError);
  assert.not.ok(new HeadfastError("closed", "x") instanceof PrefixDriftError);
  assert.not.ok(new Error("x") instanceof HeadfastError);
  assert.not.ok((null as unknown) instanceof HeadfastError);
});

test("what is not ours counts as an attempt, and keeps its stack as the cause's", () => {
  const ours = asHeadfastError(new TypeError("boom"));
  assert.is(ours.code, "unexpected");
  assert.is(ours.kind, "retry");
  assert.match(causeOf(new TypeError("boom")).stack ?? "", /TypeError: boom/);
});

test("a cause is bounded in bytes and cut at a character", () => {
  const { message } = causeOf(new HeadfastError("unexpected", "😀".repeat(limits.errorBytesMax)));
  assert.ok(Buffer.byteLength(message) <= limits.errorBytesMax);
  assert.ok(message.isWellFormed() && message.endsWith("…"));
});

test.run();
