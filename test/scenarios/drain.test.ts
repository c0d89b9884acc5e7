/** Workers asked to end (SIGTERM) while turns run: nothing is lost, nothing waits for a lock to run out (I3, I4, I12). */
import { Chance } from "../../src/testing/simulator/chance.ts";
import { inOrder, onePrefix, outcomes } from "../support/rig/checks.ts";
import type { Child } from "../support/rig/child.ts";
import type { Row } from "../support/rig/journal.ts";
import { inRig, long, type Rig } from "../support/rig/rig.ts";
import { together } from "../support/rig/together.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("drain", { timeoutMs: long ? 200_000 : 60_000 });

const seed = 12;
const sizes = long ? { sessions: 20, terms: 20 } : { sessions: 10, terms: 4 };
/** What is still told to the servers once all turns have stopped. */
const graceMs = 4_000;
/** Below the lock's 10 s: a handed-over turn does not wait for it. */
const startDelayMs = 8_000;

interface Rest {
  rows: Row[];
  exits: (Awaited<ReturnType<Child["term"]>> & { name: string })[];
}

async function termAgainAndAgain(rig: Rig, drainMs: number, sleeps: { least: number; spread: number }): Promise<Rest> {
  const chance = new Chance(seed);
  const serving = await rig.workers(3, { drainMs });
  const sent = new Map(Array.from({ length: sizes.sessions }, (_, n): [string, string[]] => [`b12:${n}`, []]));
  let over = false;
  /** Three at a time, as long as workers come and go. */
  const keepSending = async (session: string, ids: string[]): Promise<void> => {
    while (!over) {
      for (let n = 0; n < 3; n += 1) {
        ids.push(`${ids.length + 1}`);
        await rig.send(session, { sleep: sleeps.least + chance.below(sleeps.spread) }, ids.at(-1));
      }
      await rig.wait({ session, turnId: ids.at(-1) as string });
    }
  };
  const sending = Promise.all([...sent].map(([session, ids]) => keepSending(session, ids)));
  const exits: Promise<Rest["exits"][number]>[] = [];
  const begun: Promise<unknown>[] = [];
  for (let terms = 0; terms < sizes.terms; terms += 1) {
    const next = performance.now() + 300;
    const busy = (): Child[] =>
      serving.filter((worker) => rig.journal.rows().some((row) => row.worker === worker.name && row.endedAt === null));
    await rig.journal.until("a worker is busy", () => performance.now() >= next && serving.length > 1 && busy().length > 0);
    const leaving = chance.pick(busy());
    serving.splice(serving.indexOf(leaving), 1);
    exits.push(leaving.term().then((exit) => ({ ...exit, name: leaving.name })));
    const fresh = rig.begin({ drainMs }).then((child) => child.ready());
    begun.push(fresh.then((child) => serving.push(child)));
  }
  over = true;
  await Promise.all([sending, ...begun]);
  const rows = rig.journal.rows();
  inOrder(rows, sent);
  onePrefix(rows);
  for (const [session, ids] of sent) {
    assert.equal(
      outcomes(await rig.entries(session)).map(({ turnId, outcome }) => `${turnId} ${outcome}`),
      ids.map((id) => `${id} done`),
    );
  }
  for (const { session, turnId } of rows.filter((row) => row.outcome === "aborted")) {
    const { turn } = await (await rig.host()).turns.get({ session, turnId });
    assert.equal([turn.attemptsSpent, turn.crashes], [0, 0], "an interruption is neither an attempt nor a crash");
  }
  return { rows, exits: await Promise.all(exits) };
}

function endedInTime({ exits }: Rest, drainMs: number): void {
  for (const { name, code, signal, ms } of exits) {
    assert.equal([code, signal], [0, null], `${name} ended by itself, with 0`);
    assert.ok(ms <= drainMs + graceMs, `${name} took ${Math.round(ms)} ms`);
  }
}

/** From the end of a session's call to the beginning of its next one, where that had been sent before. */
function startDelays(rows: readonly Row[]): number[] {
  const delays = rows.flatMap((row) => {
    const next = rows.find(
      (other) => other.session === row.session && other.startedAt >= (row.endedAt ?? Number.POSITIVE_INFINITY) && other !== row,
    );
    return next === undefined || (next.turnId !== row.turnId && Number(next.turnId) % 3 === 1)
      ? []
      : [next.startedAt - (row.endedAt as number)];
  });
  return delays.sort((a, b) => a - b);
}

function noneWaited({ rows, exits }: Rest, what: string): void {
  const delays = startDelays(rows);
  const p99 = delays[Math.floor(delays.length * 0.99)] as number;
  const cut = rows.filter((row) => row.outcome === "aborted").length;
  console.log(
    `  ${what}: ${exits.length} workers left within ${Math.round(Math.max(...exits.map(({ ms }) => ms)))} ms, ${cut} turns interrupted, start delay p99 ${p99} ms, most ${delays.at(-1)} ms`,
  );
  assert.ok((delays.at(-1) as number) < startDelayMs, "a turn waited for a lock to run out");
}

async function whatRunsMayFinish(rig: Rig): Promise<void> {
  const rest = await termAgainAndAgain(rig, 5_000, { least: 50, spread: 250 });
  endedInTime(rest, 5_000);
  noneWaited(rest, "drain 5 s");
  assert.equal(
    rest.rows.filter((row) => row.outcome !== "answered" || row.attempt > 1),
    [],
    "no call was given up or repeated",
  );
}

async function whatRunsIsAborted(rig: Rig): Promise<void> {
  const rest = await termAgainAndAgain(rig, 100, { least: 300, spread: 400 });
  endedInTime(rest, 100);
  noneWaited(rest, "drain 100 ms");
  const cut = rest.rows.filter((row) => row.outcome === "aborted");
  assert.ok(cut.length > 0, "no turn was interrupted: the test proves nothing");
  for (const row of cut) {
    const next = rest.rows.find((other) => other.session === row.session && other.startedAt >= (row.endedAt as number) && other !== row);
    assert.equal([next?.turnId, next?.attempt], [row.turnId, row.attempt + 1], "an interrupted turn starts again first in its session");
  }
}

together(test, {
  "B12: workers leave one after the other while turns run: what runs is finished, none lost, each answered once": inRig(
    "b12",
    whatRunsMayFinish,
  ),
  "B12: with a drain timeout of 100 ms interrupted turns start again first, elsewhere, no attempt spent": inRig("b12", whatRunsIsAborted),
});

test.run();
