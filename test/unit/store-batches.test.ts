/** Group commit by itself: what goes together, what waits, and whom an error concerns. */
import { limits } from "../../src/domain/limits.ts";
import { Batches, type Outcome } from "../../src/store/batches.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("batches of calls");

/** Batches that are answered when the test says so; each call is answered with itself. */
function held(most = 100) {
  const sent: { calls: readonly number[]; answer(): void; fail(error: Error): void }[] = [];
  const clock = { now: 1_000 };
  const send = (calls: readonly number[]): Promise<Outcome<number>[]> =>
    new Promise((resolve, reject) => {
      sent.push({ calls, answer: () => resolve(calls.map((value) => ({ value }))), fail: reject });
    });
  return { batches: new Batches(send, () => clock.now, most), sent, clock };
}

const turnOfLoop = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
const codes = async (calls: Promise<number>[]): Promise<unknown[]> =>
  (await Promise.allSettled(calls)).map((end) => (end.status === "fulfilled" ? end.value : end.reason.message));

test("what is asked for in one turn of the loop goes together, and never with what is out already", async () => {
  const { batches, sent } = held();
  const calls = [batches.add(1, 0), Promise.resolve().then(() => batches.add(2, 0))];
  await turnOfLoop();
  calls.push(batches.add(3, 0));
  await turnOfLoop();
  assert.equal(
    sent.map((one) => one.calls),
    [[1, 2], [3]],
  );
  for (const one of sent) one.answer();
  assert.equal(await Promise.all(calls), [1, 2, 3]);
});

test("a lone call is sent in the same turn of the loop", async () => {
  const { batches, sent } = held();
  void batches.add(1, 0);
  await new Promise((resolve) => setImmediate(resolve));
  assert.is(sent.length, 1);
});

test("while enough are out the rest waits, in order, and goes with the first answer", async () => {
  const { batches, sent } = held();
  for (let n = 0; n < limits.storeBatchesOutMax; n += 1) {
    void batches.add(n, 0);
    await turnOfLoop();
  }
  for (const n of [7, 8, 9]) void batches.add(n, 0);
  await turnOfLoop();
  assert.is(sent.length, limits.storeBatchesOutMax);
  sent[0]?.answer();
  await turnOfLoop();
  assert.equal(sent.at(-1)?.calls, [7, 8, 9]);
});

test("batches without an answer do not hold back what comes later for ever", async () => {
  const { batches, sent, clock } = held();
  for (let n = 0; n < limits.storeBatchesOutMax; n += 1) {
    void batches.add(n, 0);
    await turnOfLoop();
  }
  void batches.add(8, 0);
  clock.now += limits.storeBatchHeldMs;
  void batches.add(9, 0);
  await turnOfLoop();
  assert.equal(sent.at(-1)?.calls, [8, 9]);
  void batches.add(10, 0);
  await turnOfLoop();
  assert.is(sent.length, limits.storeBatchesOutMax + 1);
});

test("a batch is bounded in calls and in bytes, and what is too large for it goes alone", async () => {
  const { batches, sent } = held(3);
  const all = limits.storeBatchBytesMax;
  const bytes = [1, 1, 1, 1, all / 2, all / 2, 1, all * 2, 1];
  const calls = bytes.map((one, n) => batches.add(n, one));
  for (let n = 0; n < bytes.length; n += 1) {
    await turnOfLoop();
    for (const one of sent) one.answer();
  }
  assert.equal(await Promise.all(calls), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
  assert.equal(
    sent.map((one) => one.calls),
    [[0, 1, 2], [3, 4], [5, 6], [7], [8]],
  );
});

test("a batch that fails as a whole fails its own calls and no others", async () => {
  const { batches, sent } = held(2);
  const calls = [1, 2, 3].map((n) => batches.add(n, 0));
  await turnOfLoop();
  sent[0]?.fail(new Error("lost"));
  sent[1]?.answer();
  assert.equal(await codes(calls), ["lost", "lost", 3]);
});

test("an outcome of its own concerns nobody else", async () => {
  const send = async (calls: readonly number[]): Promise<Outcome<number>[]> =>
    calls.map((value) => (value === 2 ? { error: new Error("two") } : { value }));
  const batches = new Batches(send, () => 0, 10);
  assert.equal(await codes([1, 2, 3].map((n) => batches.add(n, 0))), [1, "two", 3]);
});

test.run();
