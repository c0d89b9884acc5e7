/**
 * The seeded simulator: the real actors, hosts, observer and reconciler over in-memory ports. The seed draws a plan,
 * decides every interleaving and injects every fault; checkers judge after each operation, and once more when all is calm
 * and nothing may be left.
 */
import type { ManifestEntry } from "../../domain/records.ts";
import { Actions } from "./actions.ts";
import { checkAtRest } from "./end-checker.ts";
import { FollowedLog, Violation } from "./log-checker.ts";
import { MemoryChecker } from "./memory-checker.ts";
import { OwnerChecker } from "./owner-checker.ts";
import { type ActionName, type Plan, planOf } from "./plan.ts";
import { type Operation, settle } from "./scheduler.ts";
import { botNames, SimulatedWorld } from "./world.ts";

export interface SimulationResult {
  seed: number;
  violation: { invariant: string; message: string } | null;
  /** Operations that were applied. */
  steps: number;
  entries: number;
  calls: number;
  trace: readonly string[];
}

/** A run that takes more operations than this goes nowhere. */
const stepsMax = 30_000;

/** One run. The same seed gives the same result; `overrides` pin parts of the plan. */
export async function simulate(seed: number, overrides: Partial<Plan> = {}): Promise<SimulationResult> {
  const run = new Run({ ...planOf(seed), ...overrides });
  let violation: SimulationResult["violation"] = null;
  try {
    await run.go();
  } catch (error) {
    const invariant = error instanceof Violation ? error.invariant : "unexpected";
    violation = { invariant, message: error instanceof Violation ? error.message : ((error as Error).stack ?? String(error)) };
  }
  const { world } = run;
  return {
    seed,
    violation,
    steps: world.steps,
    entries: [...run.logs.values()].reduce((sum, log) => sum + log.seq, 0),
    calls: world.history.calls.length,
    trace: world.history.trace,
  };
}

export class Run {
  readonly world: SimulatedWorld;
  readonly actions: Actions;
  readonly logs = new Map<string, FollowedLog>();
  readonly owners = new OwnerChecker();
  readonly memory: MemoryChecker;
  readonly #toSend: { session: string; number: number }[] = [];
  readonly #manifests = new Map<string, readonly ManifestEntry[]>();
  #actionsLeft: number;

  constructor(plan: Plan) {
    this.world = new SimulatedWorld(plan);
    this.actions = new Actions(this.world);
    this.memory = new MemoryChecker(this.world.ownWrites, this.world.history);
    this.world.onApplied = (operation) => this.#afterwards(operation);
    this.world.onCall = (call) => this.#judge(() => this.owners.onCall(call));
    this.#actionsLeft = plan.actionsMax;
    for (let number = 1; number <= plan.turnsPerSession; number += 1)
      for (const session of plan.sessions) this.#toSend.push({ session, number });
  }

  async go(): Promise<void> {
    await this.#rememberPersonas();
    while (await this.#stormy());
    await this.#calmDown();
    await checkAtRest(this);
  }

  // ── the storm ──────────────────────────────────────────────────────────────────────────────────

  /** One thing happens. False: nothing is left to happen by itself. */
  async #stormy(): Promise<boolean> {
    const { chance, scheduler, queues, plan } = this.world;
    this.#count();
    const next = this.#toSend[0];
    const choice = chance.weighted({
      operate: scheduler.operations.length > 0 ? 20 : 0,
      deliver: queues.activations.ready.length > 0 ? 6 : 0,
      send: next === undefined ? 0 : 2,
      act: this.#actionsLeft > 0 ? 1 + 25 / (plan.turnsPerSession + 4) / 5 : 0,
      time: scheduler.operations.length === 0 ? 4 : 0.2,
      restart: this.world.workers.length < plan.workers ? 1 : 0,
    });
    if (choice === "send" && next !== undefined) {
      this.#toSend.shift();
      this.actions.send(next.session, next.number);
    } else if (choice === "act") {
      this.#actionsLeft -= 1;
      const name = chance.weighted<ActionName>(plan.actions);
      if (name !== undefined) this.actions.run(name);
      await this.#rememberPersonas();
    } else if (choice === "restart") this.world.startWorker();
    else await this.#one(choice);
    await this.#quiet();
    return next !== undefined || this.#actionsLeft > 0;
  }

  async #one(choice: string | undefined): Promise<void> {
    if (choice === "operate") await this.world.operate();
    else if (choice === "deliver") this.world.deliver();
    else this.#passTime();
  }

  /** To the next thing that waits for time: a timer, or a delayed activation. */
  #passTime(): boolean {
    const { scheduler, queues } = this.world;
    const due = queues.activations.nextDue();
    const timer = scheduler.nextTimer();
    if (due !== undefined && (timer === undefined || due <= timer)) {
      scheduler.now = Math.max(scheduler.now, due);
      return this.world.deliver();
    }
    return scheduler.advance();
  }

  async #quiet(): Promise<void> {
    await settle();
    const [failure] = this.actions.failures;
    if (failure !== undefined) throw failure;
    if (this.#thrown !== null) throw this.#thrown;
  }

  #thrown: Violation | null = null;

  // ── the calm ───────────────────────────────────────────────────────────────────────────────────

  /** Faults are over; operators deal with parked sessions; everything must come to an end by itself. */
  async #calmDown(): Promise<void> {
    const { world } = this;
    world.calm = true;
    world.note("CALM");
    world.store.commitAll();
    world.redisReturns();
    for (const name of botNames) {
      world.repositories[name].breakWith(null);
      world.repositories[name].unready(null);
    }
    await this.#rememberPersonas();
    while (world.workers.length < 1) world.startWorker();
    await this.#drainAll();
    for (const session of world.plan.sessions) this.actions.send(session, 90);
    await this.#drainAll();
    for (const worker of world.workers) void worker.worker.world.settlement.flush();
    await this.#idle();
    void world.workers[0]?.worker.reconciler.pass({ olderThanMs: null, letters: true }); // what crashes kept from being flushed
    await this.#idle();
  }

  async #drainAll(): Promise<void> {
    for (let rounds = 0; rounds < 60; rounds += 1) {
      await this.#idle();
      const waiting = await this.#waiting();
      if (waiting.length === 0 && this.actions.sends.every((send) => send.acknowledgedAt !== null)) return;
      for (const log of this.logs.values()) if (log.parked !== null) this.actions.replay(log.session, log.parked.turnId, "tail");
      const [worker] = this.world.workers;
      if (worker !== undefined) void worker.worker.reconciler.pass({ olderThanMs: null, letters: true });
      if (rounds === 59)
        throw new Violation(
          "I13",
          `turns are never answered: ${waiting.join(", ")}; not acknowledged: ${this.actions.sends
            .filter((send) => send.acknowledgedAt === null)
            .map((send) => send.turnId)
            .join(", ")}`,
        );
    }
  }

  /** Runs until nothing is left to do but waiting for a long time. */
  async #idle(): Promise<void> {
    const until = this.world.scheduler.now + 200_000;
    while (this.world.scheduler.now < until) {
      this.#count();
      if (!(await this.world.operate()) && !this.world.deliver()) {
        const more = this.#passTime();
        if (!more) break;
      }
      await this.#quiet();
      if (this.#nothingRuns()) break;
    }
  }

  #nothingRuns(): boolean {
    const { scheduler, queues, workers } = this.world;
    if (this.actions.sends.some((send) => send.acknowledgedAt === null)) return false;
    return scheduler.operations.length === 0 && queues.activations.pending.size === 0 && workers.every((worker) => worker.stays.size === 0);
  }

  async #waiting(): Promise<string[]> {
    const { turns } = this.world.store.contents();
    return turns
      .filter((turn) => this.logs.get(turn.session)?.ended.has(turn.number) !== true)
      .map((turn) => `${turn.session} ${turn.turnId}#${turn.generation} (${turn.number})`);
  }

  #count(): void {
    this.world.steps += 1;
    this.world.history.step = this.world.steps;
    if (this.world.steps > stepsMax) throw new Violation("I3", `nothing comes to an end within ${stepsMax} steps`);
  }

  // ── after each operation ───────────────────────────────────────────────────────────────────────

  async #afterwards(operation: Operation): Promise<void> {
    if (operation.label === "files.write") await this.#rememberPersonas();
    if (operation.kind !== "write") return;
    await this.#judge(() => this.#followAll());
  }

  /** What a checker throws ends the run, not the operation that it judges. */
  async #judge(check: () => void | Promise<void>): Promise<void> {
    try {
      await check();
    } catch (error) {
      this.#thrown ??= error instanceof Violation ? error : new Violation("unexpected", (error as Error).stack ?? String(error));
    }
  }

  async #followAll(): Promise<void> {
    const { store } = this.world;
    for (const session of this.world.plan.sessions) {
      const owner = await store.ownership.get(session);
      if (owner === undefined) continue;
      this.owners.follow(owner);
      const log =
        this.logs.get(session) ??
        new FollowedLog({ ...owner, bot: this.#firstOwner(session, owner.bot), ownerEpoch: 0 }, this.world.history);
      this.logs.set(session, log);
      for (const entry of await store.log.read(session, log.seq + 1, 100)) {
        log.follow(entry, entry.turn === null ? undefined : await store.turns.byNumber(session, entry.turn.number));
        const observation = await store.observations.get(session);
        await this.#rememberManifests();
        this.memory.follow(
          entry,
          observation?.baselineEpoch === entry.checkpoint.ownerEpoch ? observation.baseline : null,
          (id) => this.#manifests.get(id) ?? [],
        );
      }
    }
  }

  readonly #firstOwners = new Map<string, string>();
  #firstOwner(session: string, bot: string): string {
    const known = this.#firstOwners.get(session) ?? bot;
    this.#firstOwners.set(session, known);
    return known;
  }

  async #rememberManifests(): Promise<void> {
    for (const { checkpoint } of this.world.store.contents().entries) {
      const id = checkpoint.heard?.state;
      if (id !== undefined && !this.#manifests.has(id)) this.#manifests.set(id, (await this.world.store.states.get(id)) ?? []);
    }
    for (const { baseline } of this.world.store.contents().observations) {
      const id = baseline?.state;
      if (id !== undefined && !this.#manifests.has(id)) this.#manifests.set(id, (await this.world.store.states.get(id)) ?? []);
    }
  }

  async #rememberPersonas(): Promise<void> {
    for (const name of botNames) {
      const all = this.owners.personas.get(name) ?? new Set();
      this.owners.personas.set(name, all);
      try {
        const persona = await this.world.repositories[name].persona();
        if (persona.state === "ready") all.add(persona.body);
      } catch {
        // broken for now: it has no persona that anybody could have read
      }
    }
  }
}
