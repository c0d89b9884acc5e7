/** What `doctor` finds out about sessions: stuck, parked, dead letters, and one session's log and prefix. */
import { HeadfastError, isHeadfastError } from "../domain/errors.ts";
import { limits } from "../domain/limits.ts";
import { sha256 } from "../domain/prefix.ts";
import { type WaitingSession, waitingSessions } from "../host/waiting.ts";
import { activationsKnown, Headfast, type MongoInspection, type RedisInspection, type SessionAhead, sessionsAhead } from "../main.ts";
import type { Place } from "./connect.ts";
import { type Check, failedBy } from "./doctor-check.ts";
import type { Inspected } from "./doctor-services.ts";

export interface SessionQuestions {
  /** This session's log and prefix. */
  session: string | undefined;
  stuckMs: number | undefined;
}

/** Sessions told one by one; the rest is counted. */
const toldMax = 20;

export async function checkSessions(
  place: Place,
  redis: Inspected<RedisInspection>,
  mongo: Inspected<MongoInspection>,
  questions: SessionQuestions,
): Promise<Check[]> {
  const unfit = [...redis.checks, ...mongo.checks].some(
    ({ status, check }) => status === "failed" && !(check === "redis" && redis.seen === undefined),
  );
  if (mongo.seen === undefined || unfit) return [{ check: "sessions", status: "skipped", detail: "not looked at: mend what failed first" }];
  if (mongo.seen.fresh || mongo.seen.shards === null) return [{ check: "sessions", status: "ok", detail: "none yet" }];
  const hf = await Headfast.connect(place);
  try {
    const ahead = redis.seen === undefined ? [] : await sessionsAhead(place.redis, deploymentOf(hf, place));
    const checks = [
      ...(await stuck(hf, place, redis.seen !== undefined, new Set(ahead.map(({ session }) => session)), questions.stuckMs)),
      ...aheadChecks(ahead),
      await letters(hf),
    ];
    return questions.session === undefined ? checks : [...checks, ...(await oneSession(hf, questions.session))];
  } catch (error) {
    return [failedBy("sessions", error, "the documents of this namespace could not be read")];
  } finally {
    await hf.close();
  }
}

/** Pure: sessions that wait for a newer worker, and what to do. */
export function aheadChecks(ahead: readonly SessionAhead[]): Check[] {
  const checks = ahead.slice(0, toldMax).map(({ session, message }): Check => {
    const detail = `its next turn waits untouched: ${message}`;
    const advice = "run a worker of the newer release, which takes it within seconds; older workers leave the session as it is";
    return { check: `session ${session}`, status: "degraded", code: "version_ahead", detail, advice };
  });
  if (ahead.length > toldMax)
    checks.push({ check: "sessions", status: "degraded", detail: `and ${ahead.length - toldMax} more that wait for a newer release` });
  return checks;
}

function deploymentOf(hf: Headfast, { namespace }: Place): { namespace: string; shards: number } {
  return { namespace, shards: hf.internals.queues.shards };
}

/** @param ahead sessions that are told with another reason */
async function stuck(
  hf: Headfast,
  place: Place,
  redisAnswers: boolean,
  ahead: ReadonlySet<string>,
  stuckMs: number = limits.stuckMs,
): Promise<Check[]> {
  const { ledger, queues } = hf.internals;
  const waiting = (await waitingSessions(ledger, queues.shards, stuckMs)).filter(({ session }) => !ahead.has(session));
  if (waiting.length === 0) return [{ check: "sessions", status: "ok", detail: `no turn is open for more than ${stuckMs} ms` }];
  const names = waiting.slice(0, toldMax);
  const known = redisAnswers
    ? await activationsKnown(
        place.redis,
        deploymentOf(hf, place),
        names.map(({ session }) => session),
      )
    : undefined;
  const checks = names.map((one) => waitingCheck(one, known === undefined ? undefined : known.has(one.session), queues.now()));
  if (waiting.length > toldMax)
    checks.push({ check: "sessions", status: "degraded", detail: `and ${waiting.length - toldMax} more that wait so long` });
  return checks;
}

/** Pure: what is known of a session that waits, and what to do. */
export function waitingCheck(one: WaitingSession, activation: boolean | undefined, now: number): Check {
  const since = `turn ${JSON.stringify(one.turnId)} is open since ${one.acceptedAt}${one.attemptsSpent > 0 ? `, ${one.attemptsSpent} attempts spent, last ${one.lastError}` : ""}`;
  const of = (detail: string, advice: string): Check => ({
    check: `session ${one.session}`,
    status: "degraded",
    detail: `${since}; ${detail}`,
    advice,
  });
  if (one.unowned)
    return of("its ownership document is missing", "restore session_ownership from a backup, or send to the session again: that claims it");
  if (one.parked)
    return of("parked: it waits behind a dead letter", `headfast dead-letter ls --session ${quoted(one.session)}, then replay or discard`);
  if (one.dueAt !== null && one.dueAt > now)
    return of(`it is tried again in ${Math.ceil((one.dueAt - now) / 1000)} s`, "wait, or cancel the turn");
  if (activation === false)
    return of("Redis knows no activation of it", `a worker mends that within ${limits.reconcileMs / 1000} s: is one running?`);
  if (one.running)
    return of(
      "it has recorded steps, so it was running",
      `is a worker with bot ${JSON.stringify(one.bot)} running? headfast turn show says what it did`,
    );
  return of(
    activation === undefined ? "Redis does not answer" : "its activation waits",
    `is a worker with bot ${JSON.stringify(one.bot)} in its config running?`,
  );
}

function quoted(text: string): string {
  return /^[\w:./@-]+$/u.test(text) && !text.startsWith("-") ? text : JSON.stringify(text);
}

async function letters(hf: Headfast): Promise<Check> {
  const check = "dead letters";
  const all = await hf.deadLetters.list({ limit: limits.listMax });
  if (all.length === 0) return { check, status: "ok", detail: "none" };
  const codes = new Map<string, number>();
  for (const { cause } of all) codes.set(cause.code, (codes.get(cause.code) ?? 0) + 1);
  const parked = all.filter(({ parks }) => parks).length;
  const by = [...codes].map(([code, count]) => `${count} ${code}`).join(", ");
  const count = `${all.length}${all.length === limits.listMax ? " or more" : ""}`;
  return {
    check,
    status: "degraded",
    detail: `${count} (${by})${parked > 0 ? `, ${parked} of them hold their session back` : ""}`,
    advice: "headfast dead-letter ls; then show, replay or discard each",
  };
}

async function oneSession(hf: Headfast, session: string): Promise<Check[]> {
  await hf.sessions.get(session).catch((error: unknown) => {
    if (isHeadfastError(error, "session_not_found")) throw error; // a name that is not there is no damage
  });
  return [await logCheck(hf, session), await prefixCheck(hf, session)];
}

async function logCheck(hf: Headfast, session: string): Promise<Check> {
  const check = `log of ${session}`;
  try {
    return { check, status: "ok", detail: `${await hf.sessions.verify(session)} entries, each follows the one before` };
  } catch (error) {
    return failedBy(check, error, "the transcript was edited by hand or damaged: restore it from a backup; until then its turns fail");
  }
}

/** The stored prefix against its hash, the snapshot's, and what the last step was sent with (I1). */
async function prefixCheck(hf: Headfast, session: string): Promise<Check> {
  const check = `prefix of ${session}`;
  try {
    const [{ owner, seq }, prefix] = await Promise.all([hf.sessions.get(session), hf.sessions.prefix(session)]);
    if (prefix === null) return { check, status: "ok", detail: "not taken yet" };
    if (prefix.sha256 !== owner.prefixSha256) throw drifted(session, "prefix_parts holds other bytes than the ownership document names");
    if (prefix.persona !== null && sha256(prefix.persona) !== owner.personaSha256)
      throw drifted(session, "the persona snapshot was changed after it was taken");
    const sent = await lastSent(hf, session, seq, owner.ownerEpoch, owner.baseline ?? 0);
    if (sent !== undefined && sent !== prefix.sha256) throw drifted(session, "the last step was sent with another prefix");
    return { check, status: "ok", detail: `sha256 ${prefix.sha256}` };
  } catch (error) {
    return failedBy(
      check,
      error,
      "nothing that differs is ever sent: restore the document from a backup; the session's turns end as dead letters until then",
    );
  }
}

function drifted(session: string, what: string): HeadfastError {
  return new HeadfastError("prefix_drift", `session ${JSON.stringify(session)}: ${what}`, { data: { session } });
}

/** The hash that the newest step of this owner and baseline was sent with. */
async function lastSent(hf: Headfast, session: string, seq: number, ownerEpoch: number, baseline: number): Promise<string | undefined> {
  const { entries } = await hf.sessions.transcript(session, { after: Math.max(0, seq - limits.logBatchMax), limit: limits.logBatchMax });
  const step = entries.findLast(
    ({ kind, checkpoint }) => kind === "step" && checkpoint.ownerEpoch === ownerEpoch && checkpoint.baseline === baseline,
  );
  return step?.prefixSha256 ?? undefined;
}
