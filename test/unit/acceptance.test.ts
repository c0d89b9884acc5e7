/** Accepting a turn: its checks, and its place among racing, lost and rolled-back inserts (rules 1 and 3). */
import { checkTurnRequest, claimSession, freshTurn, placeTurn, uniqueMark } from "../../src/domain/acceptance.ts";
import { limits } from "../../src/domain/limits.ts";
import { findLast } from "../../src/domain/log.ts";
import type { Ledger } from "../../src/domain/ports.ts";
import { realSystem } from "../../src/system.ts";
import { type MemoryStore, memoryStore } from "../../src/testing/memory-store.ts";
import { refusal } from "../support/refusal.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("acceptance");

function ledger(): Ledger & { store: MemoryStore } {
  return { store: memoryStore(), system: realSystem, worker: "w", shardOf: () => 0 };
}

function fresh(with_: Ledger, turnId: string, input = "hello") {
  return freshTurn(with_, checkTurnRequest({ bot: "ada", session: "s", turnId, input }), 0);
}

test("a checked request has exactly the fields given, and every text well-formed", () => {
  const given = {
    bot: "ada",
    session: "s",
    turnId: "1",
    input: "a\ud83d",
    user: { id: "u", name: "\udc4d" },
    deliverTo: "d",
    traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
  };
  assert.equal(checkTurnRequest(given), { ...given, input: "a\ufffd", user: { id: "u", name: "\ufffd" } });
  assert.equal(Object.keys(checkTurnRequest({ bot: "ada", session: "s", turnId: "1", input: "x", user: undefined })), [
    "bot",
    "session",
    "turnId",
    "input",
  ]);
  const atLimit = "é".repeat(limits.inputBytesMax / 2);
  assert.is(checkTurnRequest({ ...given, input: atLimit }).input, atLimit);
});

test("rule 1: numbers are dense from 1 whatever the hint, and 40 racing turns get 40 places", async () => {
  const world = ledger();
  const placed = await Promise.all(Array.from({ length: 40 }, (_, n) => placeTurn(world, fresh(world, `t${n}`), 0)));
  assert.equal(
    placed.map(({ turn }) => turn.number).sort((a, b) => a - b),
    Array.from({ length: 40 }, (_, n) => n + 1),
  );
  assert.is((await placeTurn(world, fresh(world, "late"), 7)).turn.number, 41, "behind a hint that lags far");
});

test("rule 3: an insert whose answer was lost is found to be mine; sent again it is the same turn", async () => {
  const world = ledger();
  await placeTurn(world, fresh(world, "a"), 0);
  const mine = fresh(world, "b");
  world.store.mode = "lose_answer";
  assert.is((await refusal(placeTurn(world, mine, 1))).code, "store_unavailable");
  const again = await placeTurn(world, mine, 1);
  assert.equal([again.turn.number, again.duplicate], [2, false], "the same writer");
  const resent = await placeTurn(world, fresh(world, "b"), 1);
  assert.equal([resent.turn.number, resent.duplicate, resent.turn.writer], [2, true, mine.writer]);
});

test("rule 1: no number is tried behind one that has no majority; after a fail-over there is no hole", async () => {
  const world = ledger();
  world.store.mode = "tentative";
  await refusal(placeTurn(world, fresh(world, "lost"), 0));
  const placing = placeTurn(world, fresh(world, "b"), 0);
  await new Promise((resolve) => setImmediate(resolve));
  assert.is(world.store.contents().turns.length, 0, "it waits: the number is held by what no majority has");
  world.store.failover();
  assert.is((await placing).turn.number, 1);
});

test("I5: a claim that loses is told who won, also when its own answer was lost", async () => {
  const world = ledger();
  assert.is((await claimSession(world, "s", "ada", { role: "assignment" })).role, "assignment");
  const error = await refusal(claimSession(world, "s", "bob"));
  assert.equal([error.code, error.data], ["ownership_conflict", { session: "s", owner: "ada", claimant: "bob" }]);
  world.store.mode = "lose_answer";
  await refusal(claimSession(world, "t", "ada"));
  assert.is((await claimSession(world, "t", "ada")).bot, "ada");
});

test("a mark orders by time within a shard and is nobody else's", () => {
  const system = { ...realSystem, now: () => 5 };
  const marks = Array.from({ length: 100 }, () => uniqueMark(3, system));
  assert.is(new Set(marks).size, 100);
  assert.ok(marks.every((mark) => mark.startsWith("3:000000000000005:") && mark < "3:000000000000006"));
});

test("findLast finds the end of dense numbers from any hint, with few reads", async () => {
  for (const size of [0, 1, 2, 3, 7, 8, 100, 1000]) {
    for (const hint of [0, 1, size >> 1, size, size + 5]) {
      let reads = 0;
      const probe = async (n: number) => {
        reads += 1;
        return n >= 1 && n <= size ? n : undefined;
      };
      assert.is((await findLast(probe, hint))?.n ?? 0, size, `${size} from ${hint}`);
      assert.ok(reads <= 24, `${reads} reads for ${size} from ${hint}`);
    }
  }
});

test.run();
