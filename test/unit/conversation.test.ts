/** A worker's copy of a session: cold and warm are the same bytes; what was edited breaks it; it is thrown away by size. */
import { Conversation, WarmCopies } from "../../src/actors/conversation.ts";
import type { Message } from "../../src/domain/messages.ts";
import type { Entry } from "../../src/domain/records.ts";
import { anthropicDialect as dialect } from "../../src/models/anthropic-dialect.ts";
import { accepted, append, doneOf, owner, type TestLedger, testLedger } from "../support/ledger.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("conversation");

/** A session with `count` turns; every checkpoint carries the sequence as a holder records it. */
async function talked(count: number): Promise<TestLedger> {
  const ledger = testLedger();
  await accepted(ledger, "1");
  const holder = await Conversation.load(ledger.store, await owner(ledger));
  for (let n = 1; n <= count; n += 1) holder.apply(await said(ledger, holder, n));
  return ledger;
}

async function said(ledger: TestLedger, holder: Conversation, n: number): Promise<Entry> {
  const turn = await accepted(ledger, `${n}`);
  const messages: Message[] = [
    { role: "user", blocks: [{ type: "input", text: `é ${n}` }] },
    { role: "assistant", text: `answer ${n}`, toolCalls: [] },
  ];
  const rendered = messages.map(dialect.renderMessage);
  return append(ledger, (end) => {
    const draft = doneOf(turn)(end);
    return { ...draft, messages, rendered, checkpoint: { ...draft.checkpoint, sequence: holder.sequence(rendered) } };
  });
}

const load = async (ledger: TestLedger) => Conversation.load(ledger.store, await owner(ledger));

test("a cold copy, read in batches over hundreds of entries, is the warm one byte for byte", async () => {
  const ledger = await talked(450);
  const warm = await load(ledger);
  assert.is(warm.tail.seq, 450);
  assert.is(warm.rendered.length, 900);
  const holder = await load(ledger);
  await said(ledger, holder, 451);
  const behind = await warm.catchUp(ledger.store);
  assert.equal(
    behind.map(({ seq }) => seq),
    [451],
  );
  const cold = await load(ledger);
  assert.equal(
    [warm.rendered, warm.sequence(), warm.tail, warm.bytes, warm.last],
    [cold.rendered, cold.sequence(), cold.tail, cold.bytes, cold.last],
  );
  assert.equal(await warm.catchUp(ledger.store), [], "current: nothing is behind");
  assert.is(warm.broken, null);
});

const edits: Record<string, [(entry: Entry) => Entry, string]> = {
  "a rendered message": [
    (entry) => ({ ...entry, rendered: entry.rendered.map((text) => text.replace("é", "e\u0301")) }),
    "document_invalid",
  ],
  "a neutral message": [(entry) => ({ ...entry, messages: [] }), "document_invalid"],
  "the checkpoint": [(entry) => ({ ...entry, checkpoint: { ...entry.checkpoint, through: 99 } }), "document_invalid"],
  "the previous hash": [(entry) => ({ ...entry, previousHash: "0" }), "document_invalid"],
  "the hash": [(entry) => ({ ...entry, hash: "0" }), "document_invalid"],
};

for (const [what, [edit, code]] of Object.entries(edits)) {
  test(`an entry whose ${what} was edited breaks the copy, which says where`, async () => {
    const ledger = await talked(3);
    const { read } = ledger.store.log;
    ledger.store.log.read = async (...args) => (await read(...args)).map((entry) => (entry.seq === 2 ? edit(entry) : entry));
    const { broken } = await load(ledger);
    assert.equal([broken?.code, broken?.data.seq], [code, 2]);
  });
}

test("an entry taken out of the middle ends the reading there: nothing behind it is taken for its successor", async () => {
  const ledger = await talked(3);
  const { read } = ledger.store.log;
  ledger.store.log.read = async (...args) => (await read(...args)).filter(({ seq }) => seq !== 2);
  const { broken } = await load(ledger);
  assert.match(broken?.message ?? "", /seq 3: does not follow entry 1/);
});

test("warm copies: the least recently used go first, within the bytes; a broken one is not kept", async () => {
  const copies = new WarmCopies(3 * 5_000);
  const make = async (session: string): Promise<Conversation> => {
    const copy = await Conversation.load(testLedger().store, { ...(await owner(await talked(1))), session });
    copy.bytes = 600;
    return copy;
  };
  for (const session of ["a", "b", "c"]) copies.put(await make(session));
  const a = copies.take("a");
  assert.ok(a);
  assert.is(copies.take("a"), undefined, "whoever takes it has it alone");
  copies.put(a as Conversation);
  copies.put(await make("d"));
  assert.equal(
    ["a", "b", "c", "d"].filter((session) => copies.take(session) !== undefined),
    ["a", "c", "d"],
  );
  const broken = await make("e");
  broken.broken = new Error("edited") as never;
  copies.put(broken);
  assert.is(copies.size, 0);
});

test.run();
