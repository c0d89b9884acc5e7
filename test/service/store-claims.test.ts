/** Who owns a session when many claim it at once (C1), and whatever the driver answers (C3). */
import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { DriverCollection } from "../../src/store/commands.ts";
import { Documents } from "../../src/store/documents.ts";
import type { Stored } from "../../src/store/mapping.ts";
import { ownershipShape, ownershipStore } from "../../src/store/ownership.ts";
import { type MongoStore, openMongoStore } from "../../src/store/store.ts";
import { turnStore, turnsShape } from "../../src/store/turns.ts";
import { realSystem } from "../../src/system.ts";
import { dropDatabase, silent } from "../support/mongo.ts";
import { refusal } from "../support/refusal.ts";
import { mongoUrl, uniqueName } from "../support/services.ts";
import { at, ownership } from "../support/store-records.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("claims");
const database = uniqueName("claims");
let store: MongoStore;

test.before(async () => {
  store = await openMongoStore({ url: mongoUrl(), database, system: realSystem, log: silent });
});
test.after(async () => {
  await store.close();
  await dropDatabase(database);
});

// ── C1: claims that race ─────────────────────────────────────────────────────────────────────────

/** Claims the session for each bot at once; the owners that were told, or the code of an error. */
type Claimer = (session: string, bots: string[]) => Promise<string[]>;

async function claimRounds(claimers: Claimer[], rounds: number): Promise<void> {
  const each = 64 / claimers.length;
  const bots = (first: number, differ: boolean): string[] =>
    Array.from({ length: each }, (_, n) => (differ ? `bot ${first * each + n}` : "ada"));
  for (let round = 0; round < rounds; round += 1) {
    for (const differ of [false, true]) {
      const session = uniqueName(`c1 ${round}`);
      const told = (await Promise.all(claimers.map((claim, n) => claim(session, bots(n, differ))))).flat();
      assert.is(told.length, 64);
      assert.is(new Set(told).size, 1, `one winner in round ${round}: ${[...new Set(told)].slice(0, 5)}`);
      assert.is((await store.ownership.get(session))?.bot, told[0]);
      assert.ok(differ ? told[0]?.startsWith("bot ") : told[0] === "ada", told[0]);
    }
  }
}

async function openedClaimer(): Promise<{ claim: Claimer; close(): Promise<void> }> {
  const own = await openMongoStore({ url: mongoUrl(), database, system: realSystem, log: silent });
  const claim: Claimer = (session, bots) =>
    Promise.all(bots.map(async (bot) => (await own.ownership.claim(ownership(session, { bot }))).bot));
  return { claim, close: () => own.close() };
}

function claimerProcess(): { claim: Claimer; close(): Promise<void> } {
  const child: ChildProcess = fork(fileURLToPath(new URL("../support/claimer.ts", import.meta.url)), [database], {
    execArgv: ["--import", "tsx"],
  });
  const claim: Claimer = (session, bots) =>
    new Promise((resolve, reject) => {
      const ended = (code: number | null): void => reject(new Error(`the claimer ended with ${code}`));
      child.once("exit", ended);
      child.once("message", (told) => {
        child.off("exit", ended);
        resolve(told as string[]);
      });
      child.send({ session, bots });
    });
  return { claim, close: () => new Promise((resolve) => child.once("exit", () => resolve()).disconnect()) };
}

const long = process.env.HEADFAST_LONG === "1";

test(
  "C1 I5 64 claims at once from 8 clients: one owner, whom all are told",
  async () => {
    const claimers = long ? Array.from({ length: 8 }, claimerProcess) : await Promise.all(Array.from({ length: 8 }, openedClaimer));
    await claimRounds(
      claimers.map(({ claim }) => claim),
      long ? 500 : 8,
    ).finally(() => Promise.all(claimers.map(({ close }) => close())));
  },
  { timeoutMs: 500_000 },
);

// ── C3: what a driver may answer ─────────────────────────────────────────────────────────────────

const rival: Stored = {
  _id: "s",
  v: 1,
  bot_id: "rival",
  role: "r",
  owner_epoch: 0,
  last_number: 0,
  last_seq: 0,
  active_at: 0,
  created_at: at,
};
const mine: Stored = { ...rival, bot_id: "ada" };

/** An ownership store on a collection that answers these. */
function stubbed(answers: { updateOne: unknown; findOne: () => unknown }): ReturnType<typeof ownershipStore> {
  const collection = {
    collectionName: "session_ownership",
    updateOne: async () => answers.updateOne,
    findOne: async () => answers.findOne(),
  };
  const system = { ...realSystem, sleep: async () => {} };
  return ownershipStore(new Documents(collection as unknown as DriverCollection, ownershipShape, { log: silent, system, sharded: false }));
}

const shapes: Record<string, unknown> = {
  null: null,
  undefined: undefined,
  "a bare image of before": mine,
  "a bare image of after": mine,
  "a wrapper": { ok: 1, value: mine, lastErrorObject: { updatedExisting: true, n: 1 } },
  "a count of what was matched": { acknowledged: true, matchedCount: 1, modifiedCount: 0, upsertedCount: 0, upsertedId: null },
  "an upserted id": { acknowledged: true, matchedCount: 0, modifiedCount: 0, upsertedCount: 1, upsertedId: "s" },
  "a wrapper without a value": { ok: 1, value: null, lastErrorObject: { updatedExisting: false, n: 0 } },
};

test("C3 whatever the write answers, a rival's session is never taken for mine", async () => {
  for (const [shape, answer] of Object.entries(shapes)) {
    const stands = await stubbed({ updateOne: answer, findOne: () => rival }).claim(ownership("s"));
    assert.is(stands.bot, "rival", shape);
  }
});

test("C3 whatever the write answers, my session is mine", async () => {
  for (const [shape, answer] of Object.entries(shapes)) {
    assert.is((await stubbed({ updateOne: answer, findOne: () => mine }).claim(ownership("s"))).bot, "ada", shape);
  }
});

test("C3 a read that answers a wrapper, another document or nothing is never taken for an owner", async () => {
  for (const answer of [{ ok: 1, value: mine }, { ...mine, _id: "other" }, {}]) {
    const store = stubbed({ updateOne: mine, findOne: () => answer });
    assert.is((await refusal(store.claim(ownership("s")))).code, "document_invalid");
    assert.is((await refusal(store.get("s"))).code, "document_invalid");
  }
  for (const answer of [null, undefined]) {
    const store = stubbed({ updateOne: mine, findOne: () => answer });
    assert.is((await refusal(store.claim(ownership("s")))).code, "store_unavailable");
    assert.is(await store.get("s"), undefined);
  }
});

test("rule 3: what collided and is then gone is inserted again", async () => {
  const reads = [null, null, rival];
  assert.is((await stubbed({ updateOne: null, findOne: () => reads.shift() }).claim(ownership("s"))).bot, "rival");
  assert.equal(reads, []);
});

test("rule 16: behind a mongos a call is routed by its session, elsewhere `_id` is all it asks for", async () => {
  for (const sharded of [true, false]) {
    const filters: unknown[] = [];
    const note = async (filter: unknown): Promise<null> => {
      filters.push(filter);
      return null;
    };
    const collection = { collectionName: "turns", findOne: note, updateOne: note } as unknown as DriverCollection;
    const turns = turnStore(new Documents(collection, turnsShape, { log: silent, system: realSystem, sharded }));
    await turns.byNumber("s", 1);
    await turns.setDue("s", 1, 5);
    const key = sharded ? { _id: "s#1", session: "s" } : { _id: "s#1" };
    assert.equal(filters, [key, key]);
  }
});

test.run();
