/** What one simulated run consists of, drawn from its seed. */
import { Chance } from "./chance.ts";

/** Faults of the world, each a probability per operation of its kind, or a weight among the actions. */
export interface Plan {
  seed: number;
  workers: number;
  sessions: string[];
  turnsPerSession: number;
  /** Per operation: a write of the store that does not come through as asked. */
  failBefore: number;
  loseAnswer: number;
  tentative: number;
  /** Per operation, while something is without majority: the primary is lost, and that with it. */
  failover: number;
  readFails: number;
  /** Per operation: its process dies before or inside it. */
  crash: number;
  /** Per call of the model. */
  modelFails: number;
  modelLater: number;
  modelRefuses: number;
  modelHangs: number;
  /** Up to this many tool steps in a turn. */
  toolSteps: number;
  /** A turn that kills its process whenever it runs. */
  killer: boolean;
  /** Weights of what people and the world do. */
  actions: Partial<Record<ActionName, number>>;
  /** How many actions in all, sends aside. */
  actionsMax: number;
  onDead: "skip" | "park";
  /** The repository is not ready at first. */
  unreadyAtFirst: boolean;
}

export type ActionName =
  | "sendAgain"
  | "cancel"
  | "reown"
  | "replay"
  | "discard"
  | "edit"
  | "revert"
  | "branch"
  | "breakMemory"
  | "ready"
  | "observe"
  | "post"
  | "reconcile"
  | "crashWorker"
  | "loseLease"
  | "drain"
  | "emptyRedis"
  | "redisAway"
  | "failover"
  | "foreign"
  | "bad"
  | "claim"
  | "flush"
  | "clock";

const everything: Record<ActionName, number> = {
  sendAgain: 3,
  cancel: 2,
  reown: 0.7,
  replay: 2,
  discard: 0.5,
  edit: 3,
  revert: 1,
  branch: 0.3,
  breakMemory: 0.4,
  ready: 1,
  observe: 1,
  post: 1,
  reconcile: 1,
  crashWorker: 1.5,
  loseLease: 3,
  drain: 0.7,
  emptyRedis: 0.5,
  redisAway: 0.5,
  failover: 2,
  foreign: 0.5,
  bad: 0.3,
  claim: 0.3,
  flush: 1,
  clock: 0.3,
};

/** Each seed has a temper: some worlds are calm but for one thing, some have it all. */
export function planOf(seed: number): Plan {
  const chance = new Chance(seed);
  const on = (probability: number, value: number): number => (chance.is(probability) ? value : 0);
  const stormy = chance.is(0.4);
  const actions: Partial<Record<ActionName, number>> = {};
  for (const [name, weight] of Object.entries(everything) as [ActionName, number][]) if (stormy || chance.is(0.35)) actions[name] = weight;
  const plan: Plan = {
    seed,
    workers: 1 + chance.below(3),
    sessions: ["tg:1", "__proto__", "s#1"].slice(0, 1 + chance.below(chance.is(0.3) ? 3 : 1)),
    turnsPerSession: 2 + chance.below(5),
    failBefore: on(0.3, 0.03),
    loseAnswer: on(0.4, 0.06),
    tentative: on(0.4, 0.08),
    failover: on(0.3, 0.05),
    readFails: on(0.2, 0.02),
    crash: on(0.4, 0.015),
    modelFails: on(0.4, 0.25),
    modelLater: on(0.3, 0.2),
    modelRefuses: on(0.3, 0.1),
    modelHangs: on(0.2, 0.1),
    toolSteps: chance.below(3),
    killer: chance.is(0.08),
    actions,
    actionsMax: 5 + chance.below(25),
    onDead: chance.is(0.25) ? "park" : "skip",
    unreadyAtFirst: chance.is(0.15),
  };
  return { ...plan, ...temperOf(chance, plan) };
}

/** Some worlds are bent on one thing, so that what is rare elsewhere happens often there. */
function temperOf(chance: Chance, plan: Plan): Partial<Plan> {
  switch (chance.below(8)) {
    case 0: // fail-overs: what had no majority is taken back again and again
      return {
        sessions: ["tg:1", "__proto__"],
        tentative: 0.3,
        failover: 0.2,
        actions: { edit: 5, revert: 3, loseLease: 3 },
        actionsMax: plan.actionsMax + 30,
      };
    case 1: // letters: many refusals, many replays to the head
      return {
        modelRefuses: 0.5,
        turnsPerSession: 6,
        toolSteps: chance.below(3),
        modelLater: 0.2,
        actions: { replay: 12, cancel: 1, loseLease: 1 },
        actionsMax: 60,
        onDead: "skip",
      };
    case 2: // memory: people edit while looks fail and tools write
      return {
        toolSteps: 2,
        crash: 0,
        actions: { edit: 4, revert: 2, branch: 1, breakMemory: 4, ready: 5, observe: 2, cancel: 1 },
        actionsMax: 40,
      };
    case 3: // writes cut off: a person was there just before, and the turn is closed without them
      return {
        toolSteps: 2,
        crash: 0.02,
        actions: { edit: 6, revert: 3, cancel: 4, crashWorker: 4, sendAgain: 1 },
        actionsMax: 40,
      };
    default:
      return {};
  }
}
