/** Acts (d), (e) and (f): a worker killed, a turn that fails for good, Redis emptied. */
import {
  answeredInOrder,
  attemptsKept,
  type Claim,
  countIs,
  deadWithCause,
  finishedElsewhere,
  jobsWait,
  replayedOnce,
  type TurnRow,
  takeoverIsNoAttempt,
} from "../claims.ts";
import type { Asked } from "../evidence.ts";
import { notes } from "../memory.ts";
import { until } from "../signals.ts";
import type { Stage } from "../stage.ts";
import { afterTheKill, endings, entries, say, sendAll } from "./turns.ts";

/** Killed in the second model call of a turn, after the first was recorded and its tool has run. */
export async function workerKilled(stage: Stage): Promise<Claim[]> {
  const [session, turnId] = ["slack:C9:kill", "kill-1"];
  const nameOf = (worker: string): string => stage.workers.nameOf(worker);
  const [end] = await sendAll(stage, "ada", session, [
    [turnId, `[write-hold ${notes}/killed.md killed] Write this down, then think about it.`],
  ]);
  const { worker } = await stage.signals.held(turnId);
  await stage.workers.kill(worker);
  const began = performance.now();
  stage.signals.open("killed");
  await end?.();
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  await stage.workers.start("three"); // a worker is lost, another one comes
  const took = `${seconds} s after the kill`;
  return [
    finishedElsewhere(
      `worker ${worker} was killed in mid-turn; the turn went on after its recorded step on the other and ended once, ${took}`,
      await entries(stage, { session }, "step", "outcome", "worker"),
      worker,
      nameOf,
    ),
    takeoverIsNoAttempt(
      "the takeover was noted and spent no attempt",
      await turnDocument(stage, session, turnId, "attempts_spent", "crashes", "stall_seen"),
    ),
  ];
}

/** Two attempts, then dead; the session goes on; replayed after the fault was mended, by two operators at once. */
export async function deadLetterReplayed(stage: Stage): Promise<Claim[]> {
  const [session, turnId] = ["discord:9007199254740993", "dead-1"];
  const nameOf = (worker: string): string => stage.workers.nameOf(worker);
  const filter = { session, "turn.turn_id": turnId };
  await afterTheKill(stage);
  await say(stage, "ben", session, turnId, "[fail mended] This one cannot be answered for now.");
  const dead = await entries(stage, filter, "kind", "cause");
  const tried = await turnDocument(stage, session, turnId, "attempts");
  const next = await say(stage, "ben", session, "dead-2", "Are you still there?");
  // A worker notes what is listed in bulk, every two seconds.
  await until("the letter is listed", async () => (await stage.host.deadLetters.list({ session })).length > 0);
  const listed = await stage.host.deadLetters.list({ session });
  stage.signals.open("mended");
  await Promise.all(["anna", "otto"].map((by) => stage.host.deadLetters.replay(session, turnId, { by, why: "the provider was mended" })));
  await stage.host.turns.wait({ session, turnId }, { timeoutMs: 60_000 });
  return [
    deadWithCause("a turn that fails for good becomes a dead letter, with its cause", dead, "model_failed"),
    attemptsKept("each attempt is kept", tried, 2, nameOf),
    {
      claim: "the session went on, and the letter is listed with its whole input",
      ok: next.outcome === "done" && listed.length === 1 && listed[0]?.input.endsWith("for now.") === true,
      query: `headfast.deadLetters.list({"session":"${session}"})`,
      shown: listed.map((letter) => `${letter.turnId}: ${JSON.stringify(letter.input)}; dead-2: ${next.outcome}`).join("\n") || "no letter",
    },
    replayedOnce(
      "replayed by two operators at once after the fault was mended, it ran once more and is done",
      await endings(stage, filter),
    ),
    countIs("no letter is left", await stage.evidence.count("turns", { letter: { $exists: true } }), 0),
  ];
}

/** While a provider says "later" three sessions wait with three turns each; then Redis forgets everything. */
export async function redisEmptied(stage: Stage): Promise<Claim[]> {
  const sessions = ["web:1", "web:2", "web:3"].map((name) => `${name}:flush`);
  const sent = new Map(sessions.map((session) => [session, ["1", "2", "3"].map((n) => `${session}:${n}`)]));
  const ends = await Promise.all(
    [...sent].map(([session, turnIds]) =>
      sendAll(
        stage,
        "ben",
        session,
        turnIds.map((turnId) => [turnId, `[later provider-back] ${turnId}`]),
      ),
    ),
  );
  const waiting = { session: { $in: sessions }, due_at: { $exists: true } };
  await until(
    "the provider has put off all three sessions",
    async () => (await stage.evidence.count("turns", waiting)).result === sessions.length,
  );
  const before = await stage.evidence.lengths(`{${stage.namespace}:0}:turns~*:wait`);
  const { command, removed, left } = await stage.emptyRedis();
  const began = performance.now();
  stage.signals.open("provider-back");
  await Promise.all(ends.flat().map((end) => end()));
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  const nameOf = (worker: string): string => stage.workers.nameOf(worker);
  const log = await endings(stage, { session: { $in: sessions } });
  return [
    jobsWait("nine turns wait in Redis, three in each session", before, sessions.length, 3),
    {
      claim: "Redis was emptied under them",
      ok: removed > 0 && left === 0,
      query: command,
      shown: `${removed} keys before, ${left} after`,
    },
    answeredInOrder(`all nine were answered, in order, ${seconds} s later`, sent, log, nameOf),
    countIs(
      'neither the provider\'s "later" nor the loss spent an attempt',
      await stage.evidence.count("turns", { session: { $in: sessions }, attempts_spent: { $gt: 0 } }),
      0,
    ),
  ];
}

function turnDocument({ evidence }: Stage, session: string, turnId: string, ...fields: (keyof TurnRow)[]): Promise<Asked<TurnRow[]>> {
  return evidence.find<TurnRow>("turns", { session, turn_id: turnId, generation: 0 }, fields, {});
}
