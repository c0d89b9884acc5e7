/** Calls whose answer is lost: an error that says "later", and the same call again ends as if nothing had been lost. */

import type { Stored } from "../../src/store/mapping.ts";
import type { MongoStore } from "../../src/store/store.ts";
import { inDatabase, opened, withClient } from "../support/mongo.ts";
import { type MongoProxy, mongoProxy } from "../support/mongo-proxy.ts";
import { refusal } from "../support/refusal.ts";
import { mongoUrl } from "../support/services.ts";
import { at, entry, frozen, heard, ownership, turn } from "../support/store-records.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("lost answers", { timeoutMs: 60_000 });

/** A store whose connection can be cut. Without the driver's own retries, which hide a loss where the server has sessions. */
async function cuttable(work: (own: MongoStore, proxy: MongoProxy, database: string) => Promise<void>): Promise<void> {
  const proxy = await mongoProxy(mongoUrl());
  try {
    await withClient(proxy.url, { retryWrites: false, retryReads: false }, (client) =>
      opened({ client }, (own, database) => work(own, proxy, database)),
    );
  } finally {
    await proxy.close();
  }
}

test("C9 after a lost answer, and after a lost call, the same write again ends as if nothing had been lost", () =>
  cuttable(async (own, proxy, database) => {
    for (const cut of ["answer", "before"] as const) {
      const s = `c9 ${cut}`;
      const again = cut === "answer" ? "duplicate" : "inserted";
      const lost = async (command: string, collection: string, call: () => Promise<unknown>): Promise<void> => {
        const done = proxy.cutNext(command, collection, cut);
        const error = await refusal(call());
        await done;
        assert.equal([error.code, error.kind], ["store_unavailable", "later"], `${command} ${collection}`);
      };

      await lost("update", "session_ownership", () => own.ownership.claim(ownership(s)));
      assert.is(
        await inDatabase(database, (db) => db.collection<Stored>("session_ownership").countDocuments({ _id: s })),
        cut === "answer" ? 1 : 0,
      );
      assert.equal(await own.ownership.claim(ownership(s)), ownership(s));

      const freeze = (): Promise<void> => own.ownership.freeze(s, { bot: "ada", ownerEpoch: 0, from: null }, frozen);
      await lost("update", "session_ownership", freeze);
      await freeze();
      assert.equal(await own.ownership.get(s), ownership(s, frozen));

      await lost("insert", "turns", () => own.turns.insert(turn(s, 1)));
      assert.is(await own.turns.insert(turn(s, 1)), again);
      assert.is((await own.turns.byNumber(s, 1))?.writer, "writer 1");

      await lost("insert", "transcript", () => own.log.insert(entry(s, 1, { notice: "told once" })));
      assert.is(await own.log.insert(entry(s, 1, { notice: "told once" })), again);
      assert.is((await own.log.byKey(s, "key 1"))?.writer, "writer 1");
      assert.equal(
        (await own.log.read(s, 1, 5)).map((one) => one.seq),
        [1],
      );

      const attempt = { number: 1, worker: "w", startedAt: at, endedAt: at, error: { code: "c", message: "m" } };
      await lost("update", "turns", () => own.turns.addAttempt(s, 1, attempt, 7));
      await own.turns.addAttempt(s, 1, attempt, 7);
      assert.is((await own.turns.byNumber(s, 1))?.attemptsSpent, 1);
      assert.is((await own.turns.byNumber(s, 1))?.attempts.length, 1);

      await lost("update", "memory_observation", () => own.observations.baseline(s, "ada", 0, heard("first"), at));
      const second = await own.observations.baseline(s, "ada", 0, heard("second"), at);
      assert.is(second.baseline?.state, cut === "answer" ? "first" : "second");
    }
  }));

test("A6 I12 a read whose answer is lost is an error, not an absence", () =>
  cuttable(async (own, proxy) => {
    await own.ownership.claim(ownership("s"));
    for (const cut of ["answer", "before"] as const) {
      const done = proxy.cutNext("find", "session_ownership", cut);
      assert.is((await refusal(own.ownership.get("s"))).code, "store_unavailable");
      await done;
      assert.is((await own.ownership.get("s"))?.bot, "ada");
    }
  }));

test.run();
