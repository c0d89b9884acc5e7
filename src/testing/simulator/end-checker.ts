/** What must hold when faults are over and everything was answered: one outcome each, all told, nothing left. */

import type { Actions } from "./actions.ts";
import { demand, type FollowedLog } from "./log-checker.ts";
import type { MemoryChecker } from "./memory-checker.ts";
import { botNames, type SimulatedWorld } from "./world.ts";

/** A run that has come to rest. */
export interface Rested {
  world: SimulatedWorld;
  actions: Actions;
  logs: ReadonlyMap<string, FollowedLog>;
  memory: MemoryChecker;
}

export async function checkAtRest(run: Rested): Promise<void> {
  checkOutcomes(run);
  checkOrder(run);
  checkCauses(run);
  checkCalls(run);
  checkHosts(run);
  await checkTold(run);
  await checkNothingLeft(run);
}

/** I4, I13: every turn that was acknowledged, and every one that stands, has one outcome. */
function checkOutcomes({ world, logs, actions }: Rested): void {
  const turns = world.store.contents().turns;
  for (const { session, turnId } of actions.sends)
    demand(
      turns.some((turn) => turn.session === session && turn.turnId === turnId && turn.generation === 0),
      "I13",
      `the acknowledged turn ${turnId} is gone`,
    );
  for (const turn of turns)
    demand(logs.get(turn.session)?.ended.has(turn.number) === true, "I4", `turn ${turn.turnId}#${turn.generation} has no outcome`);
  for (const session of world.plan.sessions) {
    const numbers = turns.filter((turn) => turn.session === session).map((turn) => turn.number);
    demand(Math.max(0, ...numbers) === numbers.length, "I3", `the numbers of ${session} have holes: ${numbers.join(", ")}`);
  }
}

/** I3: acknowledged before the next was sent means a lower number. */
function checkOrder({ world, actions }: Rested): void {
  const turns = world.store.contents().turns.filter((turn) => turn.generation === 0);
  const numberOf = (session: string, turnId: string): number =>
    turns.find((turn) => turn.session === session && turn.turnId === turnId)?.number ?? 0;
  for (const a of actions.sends) {
    for (const b of actions.sends) {
      if (a.session !== b.session || a.acknowledgedAt === null || a.acknowledgedAt >= b.startedAt) continue;
      demand(
        numberOf(a.session, a.turnId) < numberOf(b.session, b.turnId),
        "I3",
        `${a.turnId} was acknowledged before ${b.turnId} was sent, but stands behind it`,
      );
    }
  }
}

/** I12: only failures that count spend attempts, and only enough of them, a refusal or crashes make a turn dead. */
function checkCauses({ world, logs }: Rested): void {
  const { history } = world;
  for (const turn of world.store.contents().turns) {
    const injected = history.injected(turn.session, turn.turnId);
    demand(
      turn.attemptsSpent <= injected.failures + injected.refusals,
      "I12",
      `${turn.turnId}#${turn.generation} spent ${turn.attemptsSpent} attempts, ${injected.failures + injected.refusals} failures were injected`,
    );
    demand(
      turn.crashes <= (history.crashes.get(turn.session) ?? 0),
      "I12",
      `${turn.turnId} was charged ${turn.crashes} crashes of ${history.crashes.get(turn.session) ?? 0}`,
    );
    const entry = logs.get(turn.session)?.ended.get(turn.number);
    demand(turn.crashes < 5 || entry?.outcome !== "done", "I12", `${turn.turnId} ran on after ${turn.crashes} crashes`);
    if (entry?.outcome !== "dead") continue;
    const code = entry.cause?.code;
    if (code === "reowned") continue;
    if (code === "model_failed" || code === "model_timeout")
      demand(injected.failures + injected.refusals >= 3, "I12", `${turn.turnId} is dead after ${injected.failures} failures`);
    else if (code === "model_refused") demand(injected.refusals >= 1, "I12", `${turn.turnId} is dead without a refusal`);
    else if (code === "crash_limit")
      demand(
        (history.crashes.get(turn.session) ?? 0) >= 5,
        "I12",
        `${turn.turnId} is dead by crashes after ${history.crashes.get(turn.session) ?? 0}`,
      );
    else demand(false, "I12", `${turn.turnId} is dead by ${code}: ${entry.cause?.message}`);
  }
}

/** A call whose answer was recorded is not made again; one whose answer was in hand only if its holder was disturbed. */
function checkCalls({ world }: Rested): void {
  const { plan, history } = world;
  if (plan.failBefore + plan.loseAnswer + plan.tentative + plan.readFails > 0) return;
  if ((plan.actions.redisAway ?? 0) + (plan.actions.replay ?? 0) + (plan.actions.reown ?? 0) > 0 || plan.onDead === "park") return;
  const answered = new Map<string, number>();
  for (const call of history.calls)
    if (call.result === "ok")
      answered.set(
        JSON.stringify([call.session, call.turnId, call.step]),
        (answered.get(JSON.stringify([call.session, call.turnId, call.step])) ?? 0) + 1,
      );
  for (const [key, times] of answered) {
    const [session] = JSON.parse(key) as [string];
    demand(
      times <= 1 + (history.disturbances.get(session) ?? 0),
      "I12",
      `the call ${key} was answered ${times} times, with ${history.disturbances.get(session) ?? 0} disturbances`,
    );
  }
}

/** Every waiting host heard of one end, the one that the log holds. */
function checkHosts({ world, logs, actions }: Rested): void {
  for (const { session, turnId } of actions.sends) {
    const ends = world.history.ends.get(JSON.stringify([session, turnId])) ?? [];
    demand(ends.length === 1, "I4", `the host of ${turnId} heard of ${ends.length} ends`);
    const [end] = ends;
    const entry = end === undefined ? undefined : logs.get(session)?.entries[end.seq - 1];
    demand(
      entry?.outcome === end?.outcome && entry?.turn?.turnId === turnId && entry?.kind !== "reowned",
      "I4",
      `the host of ${turnId} heard ${end?.outcome}, the log says ${entry?.outcome}`,
    );
  }
}

/** I7: the last turn of each session ran in calm weather: whatever changed before is told, and every note. */
async function checkTold(run: Rested): Promise<void> {
  const { world, logs, memory, actions } = run;
  for (const name of botNames) {
    const look = await world.repositories[name].look();
    if (look.state !== "ready") continue;
    for (const [session, log] of logs) {
      const last = log.entries.findLast((entry) => entry.kind === "step" && entry.step === 1);
      if (last === undefined || last.checkpoint.bot !== name || last.turn?.turnId !== "t90") continue;
      const later = world.ownWrites.some((write) => write.bot === name);
      if (!later) demand(memory.heard(session)?.state === look.seen.state, "I7", `session ${session} was not told of the last state`);
    }
  }
  for (const { session, text } of actions.notes)
    demand(logs.get(session)?.tell.notes.has(text) === true, "I7", `the note ${JSON.stringify(text)} was never told`);
}

/** I10. */
async function checkNothingLeft({ world, logs }: Rested): Promise<void> {
  const { queues } = world;
  demand(
    queues.mailboxes.size === 0,
    "I10",
    `turn queues are left: ${[...queues.mailboxes].map(([session, jobs]) => `${session}: ${[...jobs.keys()].join(" ")}`).join("; ")}`,
  );
  demand(queues.activations.pending.size === 0, "I10", "activations are left");
  for (const worker of world.workers) demand(worker.worker.world.stays.size === 0, "I10", "a stay is left");
  for (const turn of world.store.contents().turns)
    demand(turn.open === null, "I10", `turn ${turn.turnId}#${turn.generation} of ${turn.session} is still marked open`);
  for (const [session, items] of queues.inbox.items) {
    const told = [...items.values()].filter((item) => item.id.startsWith("note-") && logs.get(session)?.tell.notes.has(item.text) === true);
    demand(told.length === 0, "I10", `told notes are left in the inbox of ${session}`);
  }
}
