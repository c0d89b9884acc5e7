/**
 * The claims of the acts, each a small function of what was asked: pure, so that a test can plant wrong answers and see
 * each of them fail.
 */
import { prefixHashes, prefixTextOf, type SentBody, sequenceOf, sha256 } from "./bodies.ts";
import type { Asked } from "./evidence.ts";

export interface Claim {
  claim: string;
  ok: boolean;
  /** What was asked, as one would type it. */
  query: string;
  /** What was found, for people; may have several lines. */
  shown: string;
}

/** An entry of the log, as far as claims look at it; names are the database's. */
export interface LogRow {
  session: string;
  seq: number;
  kind: string;
  turn?: { number: number; turn_id: string; generation: number };
  step?: number;
  outcome?: string;
  worker: string;
  notice?: string;
  cause?: { code: string; message: string; stack?: string };
}

/** A turn as it was accepted, and what was tried. */
export interface TurnRow {
  session: string;
  number: number;
  turn_id: string;
  generation: number;
  attempts_spent: number;
  crashes: number;
  stall_seen?: { count: number };
  attempts?: { number: number; worker: string; started_at: string; ended_at: string; error: { code: string; message: string } }[];
}

type NameOf = (worker: string) => string;

function claimOf(claim: string, query: string, ok: boolean, shown: string): Claim {
  return { claim, ok, query, shown };
}

function sameTexts(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((text, i) => text === b[i]);
}

/** In each session the turns have ended as they were sent: dense numbers, the host's ids, all done. `sent`: session → turn ids. */
export function answeredInOrder(
  claim: string,
  sent: ReadonlyMap<string, readonly string[]>,
  { query, result }: Asked<LogRow[]>,
  nameOf: NameOf,
): Claim {
  const lines: string[] = [];
  let ok = sent.size > 0;
  for (const [session, turnIds] of sent) {
    const ended = result.filter((row) => row.session === session && row.outcome !== undefined).sort((a, b) => a.seq - b.seq);
    const inOrder =
      sameTexts(
        ended.map((row) => row.turn?.turn_id ?? ""),
        turnIds,
      ) && ended.every((row, i) => row.turn?.number === i + 1 && row.outcome === "done");
    ok &&= inOrder;
    const shown = ended.map(
      (row) => `${row.turn?.number} ${row.turn?.turn_id} (${row.outcome === "done" ? "" : `${row.outcome}, `}${nameOf(row.worker)})`,
    );
    lines.push(`${inOrder ? "" : "✗ "}${session}: ${shown.join(" · ") || "nothing"}`);
  }
  return claimOf(claim, query, ok, lines.join("\n"));
}

/** More than one worker recorded something. */
export function severalWorked(claim: string, { query, result }: Asked<string[]>, nameOf: NameOf): Claim {
  return claimOf(claim, query, new Set(result).size > 1, result.map((worker) => `${nameOf(worker)} = ${worker}`).join(", "));
}

/**
 * One prefix in the log and in what the model got, though PERSONA.md is not what it was.
 * @param persona hashes of the file before and after: the control, without which nothing would be shown
 */
export function prefixStayed(
  claim: string,
  logged: Asked<string[]>,
  bodies: readonly SentBody[],
  persona: { before: string; after: string },
): Claim {
  const sent = prefixHashes(bodies);
  const ok = logged.result.length === 1 && bodies.length > 1 && sameTexts(sent, logged.result) && persona.before !== persona.after;
  const shown = [
    `in the log: ${logged.result.map(short).join(", ") || "nothing"}`,
    `in ${bodies.length} raw bodies: ${sent.map(short).join(", ") || "nothing"}`,
    `PERSONA.md meanwhile: ${short(persona.before)} → ${short(persona.after)}`,
  ];
  return claimOf(claim, logged.query, ok, shown.join("\n"));
}

/** The new session was frozen with the line, the old one without. */
export function newPersonaForNewSession(
  claim: string,
  { query, result }: Asked<{ _id: string; persona_snapshot?: string }[]>,
  sessions: { old: string; fresh: string },
  line: string,
): Claim {
  const has = (session: string): boolean | undefined => result.find((row) => row._id === session)?.persona_snapshot?.includes(line);
  const [old, fresh] = [has(sessions.old), has(sessions.fresh)];
  const word = (found: boolean | undefined): string => (found === undefined ? "no snapshot" : found ? "has the line" : "has it not");
  return claimOf(claim, query, old === false && fresh === true, `${sessions.old}: ${word(old)}\n${sessions.fresh}: ${word(fresh)}`);
}

/** Which turns told a notice, and of what path. `expected`: turn id → the one path, or `null` for no notice. */
export function noticesAre(claim: string, { query, result }: Asked<LogRow[]>, expected: ReadonlyMap<string, string | null>): Claim {
  const lines: string[] = [];
  let ok = expected.size > 0;
  for (const [turnId, path] of expected) {
    const told = result.filter((row) => row.turn?.turn_id === turnId && row.notice !== undefined).map((row) => row.notice as string);
    const right =
      path === null ? told.length === 0 : told.length === 1 && sameTexts((told[0] ?? "").split("\n").slice(1), [`modified: "${path}"`]);
    ok &&= right;
    lines.push(`${right ? "" : "✗ "}${turnId}: ${told.map((text) => text.split("\n").slice(1).join("; ")).join(" + ") || "no notice"}`);
  }
  return claimOf(claim, query, ok, lines.join("\n"));
}

/** In the raw bodies: the request before is the beginning of the next one, and a notice stands in the newest message only. */
export function noticesAtBottom(claim: string, bodies: readonly SentBody[], told: readonly string[]): Claim {
  const lines = told.map((turnId) => {
    const at = bodies.findIndex((sent) => sent.turnId === turnId);
    const [before, sent] = [bodies[at - 1], bodies[at]];
    if (before === undefined || sent === undefined) return { ok: false, line: `${turnId}: its request or the one before is missing` };
    const [old, now] = [sequenceOf(before.body), sequenceOf(sent.body)];
    const notice = now.lastIndexOf("<headfast:notice>");
    const ok = now.startsWith(old) && notice >= old.length;
    return {
      ok,
      line: `${turnId}: the ${Buffer.byteLength(old)} bytes before are the same, the notice is at byte ${Buffer.byteLength(now.slice(0, Math.max(0, notice)))}`,
    };
  });
  return claimOf(
    claim,
    "the raw bodies that the model got",
    told.length > 0 && lines.every(({ ok }) => ok),
    lines.map(({ ok, line }) => `${ok ? "" : "✗ "}${line}`).join("\n"),
  );
}

/** A turn of two steps whose worker was killed in the second: each step recorded once, the second by another, one outcome. */
export function finishedElsewhere(claim: string, { query, result }: Asked<LogRow[]>, killed: string, nameOf: NameOf): Claim {
  const by = (step: number): string[] => result.filter((row) => row.step === step).map((row) => nameOf(row.worker));
  const outcomes = result.filter((row) => row.outcome !== undefined).map((row) => row.outcome);
  const [first, second] = [by(1), by(2)];
  const ok =
    result.length === 2 &&
    first.length === 1 &&
    first[0] === killed &&
    second.length === 1 &&
    second[0] !== killed &&
    sameTexts(outcomes as string[], ["done"]);
  return claimOf(
    claim,
    query,
    ok,
    `step 1: ${first.join(", ") || "nobody"}; step 2: ${second.join(", ") || "nobody"}; outcomes: ${outcomes.join(", ") || "none"}; killed: ${killed}`,
  );
}

/** A takeover was noted for the turn, and no attempt spent. It counts as a crash but soon after Redis came up, which explains it. */
export function takeoverIsNoAttempt(claim: string, { query, result: [turn, ...more] }: Asked<TurnRow[]>): Claim {
  const seen = turn?.stall_seen?.count ?? 0;
  const ok = turn !== undefined && more.length === 0 && turn.attempts_spent === 0 && seen === 1 && turn.crashes <= 1;
  return claimOf(claim, query, ok, turn === undefined ? "no such turn" : `attempts_spent: ${turn.attempts_spent}, takeovers seen: ${seen}`);
}

/** The turn's outcome is dead, with a cause that says why. */
export function deadWithCause(claim: string, { query, result }: Asked<LogRow[]>, code: string): Claim {
  const dead = result.filter((row) => row.kind === "dead");
  const cause = dead[0]?.cause;
  const ok = dead.length === 1 && cause?.code === code && (cause.stack ?? "") !== "";
  return claimOf(
    claim,
    query,
    ok,
    cause === undefined ? "not dead" : `${cause.code}: ${cause.message}; stack: ${cause.stack?.split("\n").length ?? 0} lines`,
  );
}

/** Every attempt is kept with its worker, its times and its error. */
export function attemptsKept(claim: string, { query, result: [turn] }: Asked<TurnRow[]>, count: number, nameOf: NameOf): Claim {
  const attempts = turn?.attempts ?? [];
  const ok = attempts.length === count && attempts.every((attempt, i) => attempt.number === i + 1 && attempt.error.code !== "");
  const shown = attempts.map(
    ({ number, worker, started_at, error }) => `${number}: ${started_at.slice(11, 23)} by ${nameOf(worker)}, ${error.code}`,
  );
  return claimOf(claim, query, ok, shown.join("\n") || "no attempt");
}

/** Each generation ended once: the first dead, its replay done. */
export function replayedOnce(claim: string, { query, result }: Asked<LogRow[]>): Claim {
  const ends = result.filter((row) => row.outcome !== undefined).map((row) => `generation ${row.turn?.generation}: ${row.outcome}`);
  return claimOf(claim, query, sameTexts(ends, ["generation 0: dead", "generation 1: done"]), ends.join(", ") || "no outcome");
}

/** There is exactly this many of it. */
export function countIs(claim: string, { query, result }: Asked<number>, expected: number): Claim {
  return claimOf(claim, query, result === expected, String(result));
}

/** This many jobs wait, in lists of this length each. */
export function jobsWait(claim: string, { query, result }: Asked<ReadonlyMap<string, number>>, lists: number, each: number): Claim {
  const ok = result.size === lists && [...result.values()].every((length) => length === each);
  return claimOf(claim, query, ok, [...result].map(([key, length]) => `${key}: ${length}`).join("\n") || "no such list");
}

export function noKeys(claim: string, { query, result }: Asked<string[]>): Claim {
  return claimOf(claim, query, result.length === 0, result.length === 0 ? "no key" : result.slice(0, 5).join(", "));
}

/** Every turn that was accepted has exactly one outcome in the log, and the log has no other. */
export function oneOutcomeEach(claim: string, turns: Asked<TurnRow[]>, log: Asked<LogRow[]>): Claim {
  const key = (session: string, turnId: string, generation: number): string => JSON.stringify([session, turnId, generation]);
  const ends = log.result
    .filter((row) => row.outcome !== undefined && row.turn !== undefined)
    .map((row) => key(row.session, row.turn?.turn_id ?? "", row.turn?.generation ?? 0));
  const accepted = turns.result.map((row) => key(row.session, row.turn_id, row.generation));
  const ok = accepted.length > 0 && sameTexts([...ends].sort(), [...accepted].sort());
  return claimOf(
    claim,
    `${turns.query}\n${log.query}`,
    ok,
    `${accepted.length} accepted, ${ends.length} outcomes, ${new Set(ends).size} different`,
  );
}

/** Prefixes per session, in the log and in what the model got: one each. */
export function onePrefixEach(
  claim: string,
  { query, result }: Asked<{ session: string; prefix_sha256?: string }[]>,
  bodies: readonly SentBody[],
): { claim: Claim; perSession: Record<string, number> } {
  const hashes = new Map<string, Set<string>>();
  const add = (session: string, hash: string): void => void hashes.set(session, (hashes.get(session) ?? new Set()).add(hash));
  for (const { session, prefix_sha256: hash } of result) if (hash !== undefined) add(session, hash);
  for (const sent of bodies) add(sent.session, sha256(prefixTextOf(sent.body)));
  const perSession = Object.fromEntries([...hashes].map(([session, set]) => [session, set.size]));
  const wrong = Object.entries(perSession).filter(([, count]) => count !== 1);
  const shown =
    wrong.length > 0
      ? wrong.map(([session, count]) => `✗ ${session}: ${count}`).join("\n")
      : `1 in each of ${hashes.size} sessions, ${bodies.length} requests`;
  return { claim: claimOf(claim, query, hashes.size > 0 && wrong.length === 0, shown), perSession };
}

export function short(hash: string): string {
  return `${hash.slice(0, 12)}…`;
}
