/** What every act does: send, wait for the end, read the log. */

import type { Ended } from "../../src/index.ts";
import { readBodies, type SentBody } from "../bodies.ts";
import type { LogRow } from "../claims.ts";
import type { Asked } from "../evidence.ts";
import { until } from "../signals.ts";
import type { Stage } from "../stage.ts";

/** Above any takeover, back-off and repair together. */
const endMsMax = 90_000;

type End = () => Promise<Ended>;

/** Sends the turns of one session one after the other; each resolves with how to wait for its end. */
export async function sendAll(
  { host }: Stage,
  bot: string,
  session: string,
  turns: readonly (readonly [turnId: string, input: string])[],
): Promise<End[]> {
  const ends: End[] = [];
  for (const [turnId, input] of turns) {
    await host.turns.send({ bot, session, turnId, input });
    ends.push(() => host.turns.wait({ session, turnId }, { timeoutMs: endMsMax }));
  }
  return ends;
}

/** One turn, to its end, whatever that is. */
export async function say(stage: Stage, bot: string, session: string, turnId: string, input: string): Promise<Ended> {
  const [end] = await sendAll(stage, bot, session, [[turnId, input]]);
  return (end as End)();
}

/** For acts that play beside (d): none of their turns is caught by its kill. Rejects after a minute. */
export async function afterTheKill({ signals }: Stage): Promise<void> {
  await until("act (d) has killed its worker", () => signals.isOpen("killed"), 60_000);
}

/** The log's entries in order, with these fields. */
export function entries({ evidence }: Stage, filter: object, ...fields: (keyof LogRow)[]): Promise<Asked<LogRow[]>> {
  return evidence.find<LogRow>("transcript", filter, fields);
}

/** Only the entries with an outcome. */
export function endings(stage: Stage, filter: object): Promise<Asked<LogRow[]>> {
  return entries(stage, { ...filter, outcome: { $exists: true } }, "session", "seq", "turn", "outcome", "worker");
}

export function bodiesOf({ records }: Stage, session: string): SentBody[] {
  return readBodies(records).filter((sent) => sent.session === session);
}
