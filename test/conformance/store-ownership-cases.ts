import type { Ownership } from "../../src/domain/records.ts";
import { frozen, fullOwnership, oddIds, oddText, ownership } from "../support/store-records.ts";
import { assert, type Suite } from "../support/suite.ts";
import { codeOf, type StoreOf, together } from "./store-tools.ts";

const guard = { bot: "ada", ownerEpoch: 0, from: null };

export function ownershipCases(test: Suite, store: StoreOf): void {
  const get = (session: string): Promise<Ownership | undefined> => store().ownership.get(session);

  test("an unknown session has no owner", async () => {
    assert.is(await get("nobody"), undefined);
  });

  test("a record comes back as it was claimed, with all fields and with the fewest", async () => {
    for (const fresh of [fullOwnership("full"), ownership("fewest"), ownership("empty persona", { personaSnapshot: "", role: "" })]) {
      assert.equal(await store().ownership.claim(fresh), fresh);
      assert.equal(await get(fresh.session), fresh);
    }
  });

  test("a second claim, by whomever, is told what stands and changes nothing", async () => {
    const first = await store().ownership.claim(ownership("second claim"));
    assert.equal(await store().ownership.claim(ownership("second claim", { role: "other" })), first);
    assert.equal(await store().ownership.claim(ownership("second claim", { bot: "rival" })), first);
    assert.equal(await get("second claim"), first);
  });

  test("I5 64 claims at once by one bot: all are told the same owner", async () => {
    const told = await together(64, (n) => store().ownership.claim(ownership("one bot", { role: `role ${n}` })));
    for (const one of told) assert.equal(one, told[0]);
  });

  test("I5 64 claims at once by 64 bots: all are told the same one", async () => {
    const told = await together(64, (n) => store().ownership.claim(ownership("64 bots", { bot: `bot ${n}` })));
    assert.is(new Set(told.map((one) => one.bot)).size, 1);
    assert.equal(await get("64 bots"), told[0]);
  });

  test("what was given and what was got may be changed by the caller without a trace in the store", async () => {
    const fresh = ownership("aliased");
    const stands = await store().ownership.claim(fresh);
    fresh.role = "changed";
    assert.is((await get("aliased"))?.role, stands.role);
    assert.is.not((await get("aliased"))?.role, "changed");
  });

  test("I6 50 freezes at once: one wins whole", async () => {
    await store().ownership.claim(ownership("race"));
    await together(50, (n) =>
      store().ownership.freeze("race", guard, {
        ...frozen,
        personaSnapshot: `persona ${n}`,
        personaSnapshotAt: `at ${n}`,
        prefixSha256: `prefix ${n}`,
      }),
    );
    const won = await get("race");
    const n = won?.personaSnapshot?.split(" ")[1];
    assert.equal(
      won,
      ownership("race", { ...frozen, personaSnapshot: `persona ${n}`, personaSnapshotAt: `at ${n}`, prefixSha256: `prefix ${n}` }),
    );
  });

  test("I6 freeze does nothing under another bot, epoch or baseline, and creates nothing", async () => {
    const stands = await store().ownership.claim(ownership("guarded"));
    for (const wrong of [{ bot: "rival" }, { ownerEpoch: 1 }, { from: 0 }])
      await store().ownership.freeze("guarded", { ...guard, ...wrong }, frozen);
    assert.equal(await get("guarded"), stands);
    await store().ownership.freeze("unclaimed", guard, frozen);
    assert.is(await get("unclaimed"), undefined);
  });

  test("I6 a persona that was not ready opens baseline 1 later, once", async () => {
    const { personaSnapshot, personaSnapshotAt, personaSha256, ...open } = frozen;
    await store().ownership.claim(ownership("late"));
    await store().ownership.freeze("late", guard, { ...open, baseline: 0 });
    assert.equal(await get("late"), ownership("late", { ...open, baseline: 0 }));
    await store().ownership.freeze("late", { ...guard, from: 0 }, { ...frozen, personaSnapshot: "" });
    await store().ownership.freeze("late", { ...guard, from: 0 }, frozen);
    await store().ownership.freeze("late", { ...guard, from: 1 }, frozen);
    assert.equal(await get("late"), ownership("late", { ...frozen, personaSnapshot: "" }));
  });

  test("a snapshot is kept byte for byte", async () => {
    await store().ownership.claim(ownership("bytes"));
    await store().ownership.freeze("bytes", guard, frozen);
    assert.is((await get("bytes"))?.personaSnapshot, oddText);
  });

  test("I5 rollForward goes only upward, and clears what was frozen", async () => {
    await store().ownership.claim(ownership("rolled", { ...frozen, lastNumber: 5 }));
    await store().ownership.rollForward("rolled", { bot: "bea", ownerEpoch: 2 });
    const rolled = ownership("rolled", { bot: "bea", ownerEpoch: 2, lastNumber: 5 });
    assert.equal(await get("rolled"), rolled);
    await store().ownership.rollForward("rolled", { bot: "cyd", ownerEpoch: 2 });
    await store().ownership.rollForward("rolled", { bot: "cyd", ownerEpoch: 1 });
    assert.equal(await get("rolled"), rolled);
    await store().ownership.rollForward("nobody", { bot: "cyd", ownerEpoch: 1 });
    assert.is(await get("nobody"), undefined);
  });

  test("touch only raises, each hint by itself, and creates nothing", async () => {
    await store().ownership.claim(ownership("t1"));
    await store().ownership.claim(ownership("t2", { lastNumber: 5, lastSeq: 5, activeAt: 5 }));
    await store().ownership.touch([
      { session: "t1", lastNumber: 3, lastSeq: 0, activeAt: 1_764_583_200_123 },
      { session: "t2", lastNumber: 4, lastSeq: 6, activeAt: 5 },
      { session: "unclaimed", lastNumber: 1, lastSeq: 1, activeAt: 1 },
    ]);
    await store().ownership.touch([]);
    assert.equal(await get("t1"), ownership("t1", { lastNumber: 3, activeAt: 1_764_583_200_123 }));
    assert.equal(await get("t2"), ownership("t2", { lastNumber: 5, lastSeq: 6, activeAt: 5 }));
    assert.is(await get("unclaimed"), undefined);
  });

  test("list: newest activity first, by bot, since a time, up to a limit", async () => {
    for (const n of [2, 1, 3]) await store().ownership.claim(ownership(`l${n}`, { bot: "lister", activeAt: n }));
    await store().ownership.claim(ownership("l4", { bot: "lister 2", activeAt: 4e15 }));
    const list = async (filter: Parameters<ReturnType<StoreOf>["ownership"]["list"]>[0]): Promise<string[]> =>
      (await store().ownership.list(filter)).map((one) => one.session);
    assert.equal(await list({ bot: "lister", limit: 10 }), ["l3", "l2", "l1"]);
    assert.equal(await list({ bot: "lister", limit: 2 }), ["l3", "l2"]);
    assert.equal(await list({ bot: "lister", activeSince: 2, limit: 10 }), ["l3", "l2"]);
    assert.equal(await list({ limit: 1 }), ["l4"]);
    assert.equal(await list({ bot: "nobody's", limit: 10 }), []);
  });

  test("B9 strange ids stay distinct", async () => {
    for (const id of oddIds) await store().ownership.claim(ownership(`odd ${id}`, { bot: `bot ${id.slice(0, 20)}`, role: id }));
    for (const id of oddIds) assert.is((await get(`odd ${id}`))?.role, id);
    await store().ownership.claim(ownership("__proto__"));
    assert.is((await get("__proto__"))?.session, "__proto__");
  });

  test("C4 a claim without a session or a bot is refused before it is written, twice, and does not stand in the way", async () => {
    const bad = [undefined, null, "", 7, {}, "\ud800"] as never[];
    for (const value of [...bad, ...bad]) {
      assert.is(await codeOf(store().ownership.claim(ownership("c4", { bot: value }))), "invalid_id");
      assert.is(await codeOf(store().ownership.claim(ownership("c4", { session: value }))), "invalid_id");
      assert.is(await codeOf(store().ownership.rollForward("c4", { bot: value, ownerEpoch: 1 })), "invalid_id");
    }
    assert.is(await get("c4"), undefined);
    assert.is((await store().ownership.claim(ownership("c4"))).bot, "ada");
  });
}
