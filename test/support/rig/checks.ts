/** What must hold of a journal and of logs, whatever was killed in between. Each throws with what it found. */
import type { Entry } from "../../../src/index.ts";
import { assert } from "../suite.ts";
import type { Row } from "./journal.ts";

/** I3: the calls of each session do not overlap, and turns begin in the order given. */
export function inOrder(rows: readonly Row[], expected: ReadonlyMap<string, readonly string[]>): void {
  const sessions = bySession(rows);
  for (const [session, turnIds] of expected) {
    const of = sessions.get(session) ?? [];
    const begun = of.map((row) => row.turnId).filter((turnId, i, all) => all[i - 1] !== turnId);
    assert.equal(begun, turnIds, `the turns of ${session} ran in this order`);
    assert.equal(overlaps(of), [], `calls of ${session} overlap`);
  }
}

/**
 * Pairs of calls of one session that ran at the same time. A call without an end ended when its process was killed, before the
 * next began. Two calls of one step are no pair: where a lease was lost unnoticed two holders may make it, and the log keeps one.
 */
export function overlaps(rows: readonly Row[]): [Row, Row][] {
  const found: [Row, Row][] = [];
  let last: Row | undefined;
  for (const row of [...rows].sort((a, b) => a.startedAt - b.startedAt)) {
    if (last !== undefined && last.endedAt !== null && last.endedAt > row.startedAt && !sameStep(last, row)) found.push([last, row]);
    if (last === undefined || (last.endedAt ?? 0) <= (row.endedAt ?? row.startedAt)) last = row;
  }
  return found;
}

function sameStep(a: Row, b: Row): boolean {
  return a.turnId === b.turnId && a.step === b.step;
}

/** How many sessions have a call during which a call of another session ran. */
export function sessionsAtOnce(rows: readonly Row[]): number {
  const ended = rows.filter((row) => row.endedAt !== null).sort((a, b) => a.startedAt - b.startedAt);
  const together = new Set<string>();
  let running: Row[] = [];
  for (const row of ended) {
    running = running.filter((other) => (other.endedAt as number) > row.startedAt);
    for (const other of running) if (other.session !== row.session) together.add(other.session).add(row.session);
    running.push(row);
  }
  return together.size;
}

/** I4: exactly one outcome for each turn and generation, in the order of the log. Answers `turnId` or `turnId~generation` by outcome. */
export function outcomes(entries: readonly Entry[]): { turnId: string; generation: number; outcome: string }[] {
  const ended = entries
    .filter((entry) => entry.outcome !== null)
    .map((entry) => ({ turnId: entry.turn?.turnId ?? "", generation: entry.turn?.generation ?? 0, outcome: entry.outcome as string }));
  const names = ended.map(({ turnId, generation }) => `${turnId}~${generation}`);
  assert.is(new Set(names).size, names.length, `a turn has two outcomes: ${names.join(" ")}`);
  return ended;
}

/** I1: one prefix in all calls of each session. */
export function onePrefix(rows: readonly Row[]): void {
  for (const [session, of] of bySession(rows))
    assert.is(new Set(of.map((row) => row.prefixSha256)).size, 1, `${session} was sent with more than one prefix`);
}

export function bySession(rows: readonly Row[]): Map<string, Row[]> {
  const sessions = new Map<string, Row[]>();
  for (const row of rows) sessions.set(row.session, [...(sessions.get(row.session) ?? []), row]);
  return sessions;
}
