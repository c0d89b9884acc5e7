/** The end: what must hold over all that was played. */
import { readBodies } from "../bodies.ts";
import { type Claim, noKeys, oneOutcomeEach, onePrefixEach, type TurnRow } from "../claims.ts";
import { until } from "../signals.ts";
import type { Stage } from "../stage.ts";
import { endings } from "./turns.ts";

export interface Counts {
  turns: number;
  sessions: number;
  prefixes: Record<string, number>;
  notices: number;
  deadLetters: number;
  replays: number;
}

export async function audit(stage: Stage): Promise<{ claims: Claim[]; counts: Counts }> {
  const { evidence, records } = stage;
  const turns = await evidence.find<TurnRow>("turns", {}, ["session", "number", "turn_id", "generation"], { _id: 1 });
  const log = await endings(stage, {});
  const bodies = readBodies(records);
  const hashes = await evidence.find<{ session: string; prefix_sha256?: string }>("transcript", { kind: "step" }, [
    "session",
    "prefix_sha256",
  ]);
  const prefixes = onePrefixEach("one prefix in each session, in the log and in what the model got", hashes, bodies);
  const sessions = Object.keys(prefixes.perSession);
  const claims = [
    oneOutcomeEach("every turn that was accepted has exactly one outcome", turns, log),
    prefixes.claim,
    await unbroken("nothing in the log was changed after it was written", stage, sessions),
    await idleCostsNothing("no turn is open, and no turn queue is left in Redis", stage),
  ];
  const counts = {
    turns: turns.result.filter((turn) => turn.generation === 0).length,
    sessions: sessions.length,
    prefixes: prefixes.perSession,
    notices: (await evidence.count("transcript", { notice: { $exists: true } })).result,
    deadLetters: (await evidence.count("transcript", { kind: "dead" })).result,
    replays: turns.result.filter((turn) => turn.generation > 0).length,
  };
  return { claims, counts };
}

/** Each entry's hash, and that of the one before it. */
async function unbroken(claim: string, { host }: Stage, sessions: readonly string[]): Promise<Claim> {
  const lengths = await Promise.all(sessions.map((session) => host.sessions.verify(session)));
  const entries = lengths.reduce((sum, length) => sum + length, 0);
  return {
    claim,
    ok: entries > 0 && lengths.every((length) => length > 0),
    query: "headfast.sessions.verify(session), for each",
    shown: `${entries} entries in ${sessions.length} hash chains`,
  };
}

/** A worker clears away behind the last outcome: it may need a moment. */
async function idleCostsNothing(claim: string, { evidence, namespace }: Stage): Promise<Claim> {
  const ask = () => evidence.keys(`{${namespace}:0}:turns~*`);
  await until("the turn queues are gone", async () => (await ask()).result.length === 0, 5_000).catch(() => undefined); // the claim says what is left
  return noKeys(claim, await ask());
}
