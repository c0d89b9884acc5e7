/** Checkpoints against a plain model: the set of numbers that have an outcome. */
import fc from "fast-check";
import { hasOutcome, initialCheckpoint, parkedAt, unparked, withNext, withOutcome } from "../../src/domain/checkpoint.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("checkpoint");
const start = initialCheckpoint({ bot: "ada", ownerEpoch: 0, baseline: null });

test("outcomes in any order: exactly those numbers have one, `through` is the largest dense end, ranges are apart", () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.integer({ min: 1, max: 40 }), { maxLength: 40 }), (numbers) => {
      const checkpoint = numbers.reduce(withOutcome, start);
      for (let n = 1; n <= 42; n += 1) assert.is(hasOutcome(checkpoint, n), numbers.includes(n), `number ${n}`);
      assert.not(numbers.includes(checkpoint.through + 1));
      let end = checkpoint.through;
      for (const [from, to] of checkpoint.above) {
        assert.ok(from > end + 1 && to >= from, "ranges in order, with a hole before each");
        end = to;
      }
    }),
    { seed: 4 },
  );
});

test("I4: a second outcome of one number is refused", () => {
  for (const numbers of [[1], [3], [2, 1], [5, 4, 6]]) {
    const checkpoint = numbers.reduce(withOutcome, start);
    for (const number of numbers) assert.throws(() => withOutcome(checkpoint, number), /has an outcome already/);
  }
});

test("an outcome closes the open turn of that number only, and takes it from the head's list", () => {
  const open = { number: 2, turnId: "b", generation: 0, steps: 1 };
  const before = withNext(withNext({ ...start, open }, 2), 7);
  assert.equal(withOutcome(before, 1).open, open);
  const after = withOutcome(before, 2);
  assert.equal([after.open, after.next], [null, [7]]);
});

test("to the head: once, behind those before, and not with an outcome", () => {
  const twice = withNext(withNext(withNext(start, 5), 3), 5);
  assert.equal(twice.next, [5, 3]);
  const ended = withOutcome(twice, 5);
  assert.is(withNext(ended, 5), ended);
});

test("rule 18: a parked session is freed by the same turn's next generation, and by no other", () => {
  const parked = parkedAt(start, { turnId: "a", generation: 2 });
  assert.equal(parked.parked, { turnId: "a", generation: 2 });
  assert.is(unparked(parked, "b"), parked);
  assert.is(unparked(parked, "a").parked, null);
});

test.run();
