import { limits } from "../../src/domain/limits.ts";
import type { Attempt, Turn } from "../../src/domain/records.ts";
import { at, fullTurn, oddIds, turn } from "../support/store-records.ts";
import { assert, type Suite } from "../support/suite.ts";
import { codeOf, type StoreOf, together } from "./store-tools.ts";

function attempt(number: number): Attempt {
  return { number, worker: "w", startedAt: at, endedAt: at, error: { code: "model_failed", message: `attempt ${number}` } };
}

const stall = (count: number, job = "1"): { job: string; count: number } => ({ job, count });

export function turnCases(test: Suite, store: StoreOf): void {
  /** A fresh turn 1 of the session; answers how to read it again. */
  const accepted = async (session: string, patch: Partial<Turn> = {}): Promise<() => Promise<Turn>> => {
    assert.is(await store().turns.insert(turn(session, 1, patch)), "inserted");
    return async () => {
      const stands = await store().turns.byNumber(session, 1);
      if (stands === undefined) throw new Error(`turn 1 of ${session} is gone`);
      return stands;
    };
  };

  test("a turn comes back as it was accepted, by number and by id", async () => {
    for (const one of [turn("least", 1), fullTurn("full", 3)]) {
      assert.is(await store().turns.insert(one), "inserted");
      assert.equal(await store().turns.byNumber(one.session, one.number), one);
      assert.equal(await store().turns.byId(one.session, one.turnId, one.generation), one);
    }
    assert.is(await store().turns.byNumber("least", 2), undefined);
    assert.is(await store().turns.byId("least", "turn 1", 1), undefined);
    assert.is(await store().turns.byId("full", "turn 1", 0), undefined);
  });

  test("a duplicate on either unique key changes nothing", async () => {
    const read = await accepted("dup");
    const first = await read();
    assert.is(await store().turns.insert(turn("dup", 1, { turnId: "other", writer: "b" })), "duplicate");
    assert.is(await store().turns.insert(turn("dup", 2, { turnId: "turn 1", writer: "b" })), "duplicate");
    assert.equal(await read(), first);
    assert.is(await store().turns.byNumber("dup", 2), undefined);
    assert.is(await store().turns.byId("dup", "other", 0), undefined);
    assert.is(await store().turns.insert(turn("dup", 2, { turnId: "turn 1", generation: 1 })), "inserted");
    assert.is(await store().turns.insert(turn("dup 2", 1)), "inserted");
  });

  test("I3 40 senders race for one number: one has it", async () => {
    const told = await together(40, (n) => store().turns.insert(turn("number", 1, { turnId: `t${n}` })));
    assert.is(told.filter((one) => one === "inserted").length, 1);
    const winner = await store().turns.byNumber("number", 1);
    assert.is(winner?.turnId, `t${told.indexOf("inserted")}`);
  });

  test("I4 40 senders race with one turn id for 40 numbers: one has it", async () => {
    const told = await together(40, (n) => store().turns.insert(turn("same id", n + 1, { turnId: "t" })));
    assert.is(told.filter((one) => one === "inserted").length, 1);
    assert.is((await store().turns.byId("same id", "t", 0))?.number, told.indexOf("inserted") + 1);
  });

  test("B9 strange session and turn ids stay distinct", async () => {
    for (const [n, id] of oddIds.entries()) {
      assert.is(await store().turns.insert(turn(id, 1, { turnId: "t", input: `as session ${n}` })), "inserted");
      assert.is(await store().turns.insert(turn("odd turns", n + 1, { turnId: id, input: `as turn ${n}` })), "inserted");
    }
    for (const [n, id] of oddIds.entries()) {
      assert.is((await store().turns.byId(id, "t", 0))?.input, `as session ${n}`);
      assert.is((await store().turns.byId("odd turns", id, 0))?.input, `as turn ${n}`);
    }
  });

  test("C4 a turn without session, id or bot is refused before it is written", async () => {
    for (const value of [undefined, null, "", 7] as never[]) {
      for (const field of ["session", "turnId", "bot"])
        assert.is(await codeOf(store().turns.insert(turn("c4", 1, { [field]: value }))), "invalid_id");
    }
    assert.is(await store().turns.insert(turn("c4", 1)), "inserted");
  });

  test("I12 an attempt counts once, in order, and only the last are kept", async () => {
    const read = await accepted("attempts");
    const add = (number: number, dueAt: number | null): Promise<void> => store().turns.addAttempt("attempts", 1, attempt(number), dueAt);
    await add(1, 500);
    await add(1, 900);
    await add(3, 900);
    assert.equal(await read(), turn("attempts", 1, { attempts: [attempt(1)], attemptsSpent: 1, dueAt: 500 }));
    await together(8, () => add(2, null));
    assert.equal(await read(), turn("attempts", 1, { attempts: [attempt(1), attempt(2)], attemptsSpent: 2 }));
    const last = limits.attemptsKeptMax + 2;
    for (let number = 3; number <= last; number += 1) await add(number, null);
    const kept = (await read()).attempts.map((one) => one.number);
    assert.equal(
      kept,
      Array.from({ length: limits.attemptsKeptMax }, (_, n) => n + 3),
    );
    assert.is((await read()).attemptsSpent, last);
  });

  test("I12 a stall is charged once, by whoever saw the one before", async () => {
    const read = await accepted("crashes");
    const charge = (expected: { job: string; count: number } | null, seen: { job: string; count: number }, by: 0 | 1 = 1): Promise<void> =>
      store().turns.addCrash("crashes", 1, expected, seen, by);
    await together(8, () => charge(null, stall(1)));
    assert.equal(await read(), turn("crashes", 1, { crashes: 1, stallSeen: stall(1) }));
    await charge(null, stall(2));
    await charge(stall(1, "other"), stall(2));
    await charge(stall(0), stall(2));
    assert.is((await read()).crashes, 1);
    await charge(stall(1), stall(2), 0);
    assert.equal(await read(), turn("crashes", 1, { crashes: 1, stallSeen: stall(2) }));
    await charge(stall(2), stall(1, "new job"));
    assert.equal(await read(), turn("crashes", 1, { crashes: 2, stallSeen: stall(1, "new job") }));
  });

  test("due time and start mark are set and taken off; the first cancel mark stands", async () => {
    const read = await accepted("marks");
    await store().turns.setDue("marks", 1, 1_764_583_200_123);
    await store().turns.setStartMark("marks", 1, "w");
    await store().turns.setCancelMark("marks", 1, "user");
    await store().turns.setCancelMark("marks", 1, "collected");
    assert.equal(await read(), turn("marks", 1, { dueAt: 1_764_583_200_123, startMark: "w", cancelMark: "user" }));
    await store().turns.setDue("marks", 1, null);
    await store().turns.setStartMark("marks", 1, null);
    assert.equal(await read(), turn("marks", 1, { cancelMark: "user" }));
    await store().turns.setDue("marks", 2, 1);
    assert.is(await store().turns.byNumber("marks", 2), undefined);
  });

  test("settle takes the turn off the open list; the first mark stands", async () => {
    const read = await accepted("settled", { open: "20:1" });
    const mark = { session: "settled", number: 1, outcome: "done", outcomeSeq: 4, letter: null } as const;
    await store().turns.settle([mark, { ...mark, number: 2 }]);
    await store().turns.settle([{ ...mark, outcome: "dead", outcomeSeq: 9, letter: "20:9" }]);
    await store().turns.settle([]);
    assert.equal(await read(), turn("settled", 1, { outcome: "done", outcomeSeq: 4 }));
    assert.equal(await store().turns.open(20, null, 10), []);
    assert.equal(await store().turns.letters(20, null, 10), []);
  });

  test("a cleared letter stays away, whatever mark comes late", async () => {
    const dead = (session: string) => ({ session, number: 1, outcome: "dead", outcomeSeq: 4, letter: "21:1" }) as const;
    const [late, early] = [await accepted("cleared late", { open: "21:1" }), await accepted("cleared early", { open: "21:1" })];
    await store().turns.settle([dead("cleared late")]);
    assert.is((await store().turns.letters(21, null, 10)).length, 1);
    await store().turns.clearLetter("cleared late", 1);
    await store().turns.settle([dead("cleared late")]);
    await store().turns.clearLetter("cleared early", 1);
    await store().turns.settle([dead("cleared early")]);
    for (const [session, read] of [
      ["cleared late", late],
      ["cleared early", early],
    ] as const) {
      assert.equal(await read(), turn(session, 1, { outcome: "dead", outcomeSeq: 4 }));
    }
    assert.equal(await store().turns.letters(21, null, 10), []);
  });

  for (const field of ["open", "letter"] as const) {
    const shard = field === "open" ? 3 : 4;
    const list = async (after: string | null, limit: number, of = shard): Promise<string[]> =>
      (await store().turns[field === "open" ? "open" : "letters"](of, after, limit)).map((one) => one.session);

    test(`${field}: oldest first, of one shard only, with a cursor that never cuts between equals`, async () => {
      for (const [session, text] of [
        ["f", "3"],
        ["b", "1"],
        ["c", "1"],
        ["d", "2"],
        ["a", "0"],
        ["e", "2"],
      ]) {
        await accepted(`${field} ${session}`, { [field]: `${shard}:${text}` });
      }
      await accepted(`${field} other`, { [field]: `${shard}0:0` });
      const sorted = async (after: string | null, limit: number): Promise<string> =>
        (await list(after, limit))
          .map((one) => one.slice(-1))
          .sort()
          .join("");
      assert.is(await sorted(null, 10), "abcdef");
      assert.equal(
        (await list(null, 10)).map((one) => one.slice(-1)).filter((one) => "adf".includes(one)),
        ["a", "d", "f"],
      );
      assert.is(await sorted(null, 1), "a");
      assert.is(await sorted(null, 2), "abc", "both of the same time");
      assert.is(await sorted(`${shard}:1`, 10), "def");
      assert.is(await sorted(`${shard}:1`, 1), "de");
      assert.is(await sorted(`${shard}:3`, 1), "");
      assert.equal(await list(null, 10, shard * 10), [`${field} other`]);
    });
  }
}
