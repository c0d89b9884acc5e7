/** What hosts and operators do by entries of the log: each may be repeated, and done by two at once, without a second effect (I4, I5). */
import {
  cancelTurn,
  deadTurn,
  discardLetter,
  latestGeneration,
  reownSession,
  replayLetter,
  rollForward,
  turnState,
} from "../../src/domain/operations.ts";
import { accepted, append, deadOf, doneOf, owner, stepOf, type TestLedger, tail, testLedger } from "../support/ledger.ts";
import { refusal } from "../support/refusal.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("operations");
const op = { by: "op", why: "because" };

function kinds({ store }: TestLedger): string[] {
  return store.contents().entries.map(({ kind, turn }) => `${kind} ${turn?.turnId ?? ""}#${turn?.generation ?? ""}`);
}

test("cancel: a turn that waits is ended by the log itself, at once and once", async () => {
  const ledger = testLedger();
  const [a, b] = [await accepted(ledger, "a"), await accepted(ledger, "b")];
  const results = await Promise.all([
    cancelTurn(ledger, await owner(ledger), b, "user"),
    cancelTurn(ledger, await owner(ledger), b, "user"),
  ]);
  assert.equal(
    results.map(({ outcome }) => outcome),
    ["cancelled", "cancelled"],
  );
  assert.equal(kinds(ledger), ["cancelled b#0"]);
  assert.equal((await tail(ledger)).checkpoint.above, [[2, 2]], "the one before it still waits");
  assert.is((await turnState(ledger, await owner(ledger), a)).state, "queued");
});

test("cancel: one with recorded steps gets a mark, and the log stays; one that ended keeps its outcome", async () => {
  const ledger = testLedger();
  const [a, b] = [await accepted(ledger, "a"), await accepted(ledger, "b")];
  await append(ledger, doneOf(a));
  assert.is((await cancelTurn(ledger, await owner(ledger), a, "user")).outcome, "done");
  await append(ledger, stepOf(b));
  assert.is((await cancelTurn(ledger, await owner(ledger), b, "user")).outcome, null);
  assert.is((await ledger.store.turns.byNumber("s", 2))?.cancelMark, "user");
  assert.equal(kinds(ledger), ["step a#0", "step b#0"]);
});

test("I5: a re-own is an entry first: the document follows, by whoever sees it, also when the first one's write was lost", async () => {
  const ledger = testLedger();
  await accepted(ledger, "a");
  const { rollForward: write } = ledger.store.ownership;
  ledger.store.ownership.rollForward = () => Promise.reject(new Error("the process died"));
  await refusal(reownSession(ledger, await owner(ledger), "bob", op));
  assert.equal([(await owner(ledger)).bot, (await tail(ledger)).checkpoint.bot], ["ada", "bob"]);
  ledger.store.ownership.rollForward = write;
  await rollForward(ledger, await owner(ledger), await tail(ledger));
  const standing = await owner(ledger);
  assert.equal([standing.bot, standing.ownerEpoch, standing.baseline], ["bob", 1, null]);
  const [entry] = ledger.store.contents().entries;
  assert.equal([entry?.kind, entry?.by, entry?.why, entry?.outcome], ["reowned", "op", "because", null]);
});

test("I5: a re-own closes a turn with recorded steps, and its next generation stands at the head, once, before what was queued", async () => {
  const ledger = testLedger();
  const [a, b] = [await accepted(ledger, "a"), await accepted(ledger, "b")];
  await append(ledger, stepOf(a));
  await reownSession(ledger, await owner(ledger), "bob", op);
  await reownSession(ledger, await owner(ledger), "bob", op);
  await rollForward(ledger, await owner(ledger), await tail(ledger));
  assert.equal(kinds(ledger), ["step a#0", "reowned a#0", "next a#1"]);
  const next = await latestGeneration(ledger, "s", "a");
  assert.equal([next.generation, next.number, next.input], [1, 3, "say a"]);
  const { checkpoint } = await tail(ledger);
  assert.equal([checkpoint.next, checkpoint.owed, checkpoint.open, checkpoint.through], [[3], null, null, 1]);
  assert.is((await turnState(ledger, await owner(ledger), b)).state, "queued");
});

test("replay: two operators open one next generation; at the head it goes before what waits", async () => {
  const ledger = testLedger();
  const a = await accepted(ledger, "a");
  await accepted(ledger, "b");
  await append(ledger, deadOf(a));
  const dead = await deadTurn(ledger, await owner(ledger), "a");
  const session = await owner(ledger);
  const replays = await Promise.all([replayLetter(ledger, session, dead, "head", op), replayLetter(ledger, session, dead, "head", op)]);
  assert.equal(
    replays.map(({ turn }) => [turn.generation, turn.number]),
    [
      [1, 3],
      [1, 3],
    ],
  );
  assert.equal((await tail(ledger)).checkpoint.next, [3]);
  assert.is(ledger.store.contents().turns.length, 3);
  assert.equal(kinds(ledger), ["dead a#0", "next a#1"]);
  assert.is((await refusal(deadTurn(ledger, session, "a"))).code, "dead_letter_not_found", "it is no letter any more");
});

test("a letter is what the log says is dead, not replayed and not discarded: each other state is named", async () => {
  const ledger = testLedger();
  const [a, b] = [await accepted(ledger, "a"), await accepted(ledger, "b")];
  const reason = async (turnId: string) => (await refusal(deadTurn(ledger, await owner(ledger), turnId))).message;
  assert.match(await reason("a"), /it is queued/);
  await append(ledger, stepOf(a));
  assert.match(await reason("a"), /it is running/);
  await append(ledger, doneOf(a, 2));
  assert.match(await reason("a"), /its outcome is done/);
  await append(ledger, deadOf(b));
  const dead = await deadTurn(ledger, await owner(ledger), "b");
  await discardLetter(ledger, await owner(ledger), dead, op);
  await discardLetter(ledger, await owner(ledger), dead, op);
  assert.match(await reason("b"), /it was discarded/);
  assert.is(kinds(ledger).filter((kind) => kind.startsWith("discarded")).length, 1);
});

test("rule 18: discarding a parked turn lets the session go on", async () => {
  const ledger = testLedger();
  const a = await accepted(ledger, "a");
  await append(ledger, deadOf(a, true));
  assert.equal((await tail(ledger)).checkpoint.parked, { turnId: "a", generation: 0 });
  await discardLetter(ledger, await owner(ledger), await deadTurn(ledger, await owner(ledger), "a"), op);
  assert.is((await tail(ledger)).checkpoint.parked, null);
});

test.run();
