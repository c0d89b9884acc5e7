/** Plays the acts, prints each claim with what checked it, and says how it went. */
import pc from "picocolors";
import { withoutPassword } from "../services/launcher.ts";
import { audit, type Counts } from "./acts/audit.ts";
import { notesEdited, personaEdited, sessionsAndTurns } from "./acts/conversation.ts";
import { deadLetterReplayed, redisEmptied, workerKilled } from "./acts/faults.ts";
import { type Bills, naiveTwin } from "./acts/twin.ts";
import type { Claim } from "./claims.ts";
import type { Options } from "./options.ts";
import { openStage, type Stage } from "./stage.ts";

/** The whole demo ends within this time, whatever hangs. */
const playMsMax = 240_000;

type Say = (line: string) => void;

interface Played {
  acts: Record<string, boolean>;
  failed: number;
}

/** Resolves with the exit code. `asked`: resolves with one when somebody wants the demo to end. */
export async function play(options: Options, say: Say, asked: Promise<number>): Promise<number> {
  const began = performance.now();
  const opening = openStage(options, say);
  const stage = await Promise.race([opening, asked]);
  if (typeof stage === "number") return stage; // servers and workers that were just being started end with this process
  let late: NodeJS.Timeout | undefined;
  const hangs = new Promise<never>((_resolve, reject) => {
    late = setTimeout(() => reject(new Error(`it did not come to its end within ${playMsMax / 1000} s`)), playMsMax);
  });
  try {
    const ended = await Promise.race([playAll(stage, options, say, began), asked, stage.workers.crashed, hangs]);
    clearTimeout(late);
    if (typeof ended === "number") return ended;
    if (options.keep) await keptUp(stage, say, asked);
    return ended.failed === 0 ? 0 : 1;
  } finally {
    clearTimeout(late);
    await stage.close();
  }
}

async function playAll(stage: Stage, options: Options, say: Say, began: number): Promise<Played> {
  const played: Played = { acts: {}, failed: 0 };
  const act = async (name: string, title: string, work: () => Promise<Claim[]>): Promise<void> => {
    const start = performance.now();
    const claims = await work();
    tell(say, `${name.length === 1 ? `(${name}) ` : ""}${title}`, claims, (performance.now() - start) / 1000);
    played.acts[name] = claims.length > 0 && claims.every((claim) => claim.ok);
    played.failed += claims.filter((claim) => !claim.ok).length;
  };
  let bills: Bills | undefined;
  let counts: Counts | undefined;
  await act("a", "Sessions and turns over two worker processes", () => sessionsAndTurns(stage));
  await act("b", "PERSONA.md is edited mid-session", () => personaEdited(stage));
  await act("c", "People and the bot edit notes", () => notesEdited(stage));
  say(
    `\n${pc.dim("(d), (e) and (g) play at the same time: a takeover takes up to 14 s, by design (a lock of 10 s, looked at every 2 to 4 s).")}`,
  );
  await together([
    act("d", "A worker is killed with SIGKILL in mid-turn", () => workerKilled(stage)),
    act("e", "A turn fails for good, and is replayed", () => deadLetterReplayed(stage)),
    act("g", "A naive twin on the same script", async () => {
      const twin = await naiveTwin(stage);
      bills = twin.bills;
      return twin.claims;
    }),
  ]);
  await act("f", "Redis is emptied with turns waiting", () => redisEmptied(stage));
  await act("end", "Over all that was played", async () => {
    const end = await audit(stage);
    counts = end.counts;
    return end.claims;
  });
  const seconds = Number(((performance.now() - began) / 1000).toFixed(1));
  say(`\n${played.failed === 0 ? pc.green("Every claim held") : pc.red(`${played.failed} claims did not hold`)}, in ${seconds} s.`);
  if (options.json && counts && bills) console.log(JSON.stringify(summary(counts, bills, played, seconds)));
  return played;
}

/** All to their ends, so that none goes on behind a failure; then the first failure. */
async function together(acts: readonly Promise<void>[]): Promise<void> {
  const outcomes = await Promise.allSettled(acts);
  for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
}

function tell(say: Say, title: string, claims: readonly Claim[], seconds: number): void {
  say(`\n${pc.bold(title)} ${pc.dim(`${seconds.toFixed(1)} s`)}`);
  for (const { claim, ok, query, shown } of claims) {
    say(`  ${ok ? pc.green("✓") : pc.red("✗")} ${claim}`);
    for (const line of query.split("\n")) say(pc.dim(`      > ${line}`));
    for (const line of shown.split("\n")) say(`        ${line}`);
  }
}

function summary(counts: Counts, { headfast, naive }: Bills, { acts, failed }: Played, seconds: number): object {
  const dollars = (amount: number): number => Number(amount.toFixed(6));
  return {
    turns: counts.turns,
    sessions: counts.sessions,
    distinct_prefixes_per_session: Math.max(...Object.values(counts.prefixes)),
    prefixes: counts.prefixes,
    notices: counts.notices,
    dead_letters: counts.deadLetters,
    replays: counts.replays,
    cached_tokens: { headfast: headfast.cached, naive: naive.cached },
    fresh_tokens: { headfast: headfast.fresh, naive: naive.fresh },
    cost_usd: { headfast: dollars(headfast.costUsd), naive: dollars(naive.costUsd) },
    violations: failed,
    acts: Object.fromEntries(["a", "b", "c", "d", "e", "f", "g", "end"].map((name) => [name, acts[name] ?? false])),
    seconds,
  };
}

/** Up until somebody asks for the end, or a worker breaks. */
async function keptUp(stage: Stage, say: Say, asked: Promise<number>): Promise<void> {
  const { services, namespace, memory, records, workers } = stage;
  const lines = [
    `export HEADFAST_REDIS_URL=${withoutPassword(services.redis.url)} HEADFAST_MONGO_URL=${withoutPassword(services.mongo.url)} HEADFAST_NAMESPACE=${namespace}`,
    "npm run headfast -- session ls   # then: session show, turn, inbox, dead-letter, doctor",
    `mongosh "$HEADFAST_MONGO_URL/${namespace}"`,
    'redis-cli -u "$HEADFAST_REDIS_URL" --scan',
  ];
  say(`\nEverything stays up: Redis, MongoDB, workers ${workers.names.join(" and ")}. In another terminal:`);
  for (const line of lines) say(`  ${line}`);
  say(`The Memory Repository is ${memory}, what the model got is in ${records}. Ctrl-C ends all of it and leaves nothing behind.`);
  await Promise.race([asked, workers.crashed]);
}
