/** The turn queue is a hint: what another client or a hand put there is believed only as far as MongoDB bears it out. */
import { MailboxView } from "../../src/actors/mailbox-view.ts";
import type { QueuedTurn } from "../../src/domain/ports.ts";
import { silentLogger } from "../../src/main.ts";
import { memoryQueues } from "../../src/testing/memory-queues.ts";
import { accepted, testLedger } from "../support/ledger.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("mailbox view");

function job(more: Partial<QueuedTurn>): QueuedTurn {
  const turnId = more.turnId ?? "x";
  return { jobId: `job-${turnId}`, turnId, generation: 0, bot: "ada", input: `question ${turnId}`, ...more };
}

async function viewOf(...jobs: QueuedTurn[]) {
  const ledger = testLedger();
  const queues = memoryQueues({ system: ledger.system });
  const first = await accepted(ledger, "first");
  for (const one of jobs) queues.inject("s", one);
  const view = new MailboxView("s", ledger, queues, silentLogger);
  await view.refresh();
  return { ledger, queues, view, first };
}

test("I4: a job that claims another turn's number is a turn of its own, with the next number", async () => {
  const { ledger, view, first } = await viewOf(job({ turnId: "A", number: 1 }), job({ turnId: "B" }));
  assert.is(view.find(1), undefined, "the number is the first turn's");
  assert.is((await ledger.store.turns.byNumber("s", 1))?.input, first.input);
  assert.equal([view.find(2)?.turnId, view.find(2)?.input], ["A", "question A"]);
  assert.equal([view.find(3)?.turnId, view.find(3)?.input], ["B", "question B"]);
});

test("I4: the input that stands in MongoDB is run, whatever the job says", async () => {
  const { view, first } = await viewOf(job({ turnId: "first", number: 1, input: "another question" }));
  assert.is(view.find(1)?.input, first.input);
});

test("a job of a replay that nobody asked for is refused whole", async () => {
  const { queues, view } = await viewOf(job({ turnId: "first", generation: 3, number: 9 }));
  assert.ok(view.empty);
  const [refused] = await queues.letters.list(10);
  assert.match(JSON.stringify(refused), /no such replay/);
});

test.run();
