/** The simulated world: processes with the real actors and hosts in them, over in-memory ports that fail as told. */
import type { Worker } from "../../actors/worker.ts";
import { Worker as RealWorker } from "../../actors/worker.ts";
import { HeadfastError } from "../../domain/errors.ts";
import type { SessionId } from "../../domain/ids.ts";
import type { Bot, Lease, Ledger, Logger, Tool } from "../../domain/ports.ts";
import { HostDeadLetters } from "../../host/dead-letters.ts";
import { HostInbox } from "../../host/inbox.ts";
import { HostSessions } from "../../host/sessions.ts";
import { HostTurns } from "../../host/turns.ts";
import { MemoryQueues } from "../memory-queues.ts";
import { type MemoryRepositoryFake, memoryRepository } from "../memory-repository.ts";
import { type MemoryStore, memoryStore } from "../memory-store.ts";
import { Chance } from "./chance.ts";
import { History } from "./history.ts";
import { simulatedModel } from "./model.ts";
import type { Plan } from "./plan.ts";
import { type Operation, type Process, Scheduler } from "./scheduler.ts";
import { EventBus, queuesOf, repositoryOf, storeOf } from "./wrapped-ports.ts";

export interface Stay {
  session: SessionId;
  holder: number;
  abort: AbortController;
  /** The lock went to somebody else; whether the process knows is another matter. */
  lost: boolean;
}

export interface WorkerProcess extends Process {
  worker: Worker;
  stays: Set<Stay>;
}

export interface HostProcess extends Process {
  turns: HostTurns;
  sessions: HostSessions;
  inbox: HostInbox;
  deadLetters: HostDeadLetters;
}

export const botNames = ["ada", "bob"] as const;
export type SimulatedBot = (typeof botNames)[number];

/** Bytes that a tool of a session wrote, as the checker of I7 must know them. */
export interface OwnWrite {
  session: SessionId;
  bot: string;
  path: string;
  blob: string;
}

export class SimulatedWorld {
  readonly chance: Chance;
  readonly scheduler: Scheduler;
  readonly store: MemoryStore = memoryStore();
  readonly queues: MemoryQueues;
  readonly bus = new EventBus();
  readonly redis = { away: false };
  readonly history = new History();
  readonly repositories: Record<SimulatedBot, MemoryRepositoryFake>;
  readonly ownWrites: OwnWrite[] = [];
  readonly workers: WorkerProcess[] = [];
  readonly hosts: HostProcess[] = [];
  readonly plan: Plan;
  calm = false;
  steps = 0;
  /** Called with every operation that was applied. */
  onApplied: (operation: Operation) => Promise<void> = async () => undefined;
  onCall: (call: History["calls"][number]) => void | Promise<void> = () => undefined;
  readonly #redisProcess: Process = { name: "redis", alive: true, skewMs: 0 };
  #names = 0;
  #tentative = false;

  constructor(plan: Plan) {
    this.plan = plan;
    this.chance = new Chance(plan.seed ^ 0x5eed);
    this.scheduler = new Scheduler(this.chance);
    this.queues = new MemoryQueues(this.scheduler.systemOf(this.#redisProcess), 2);
    this.repositories = {
      ada: memoryRepository({ "PERSONA.md": "You are Ada.\n", "notes.md": "one\n" }),
      bob: memoryRepository({ "PERSONA.md": "You are Bob.\n" }),
    };
    if (plan.unreadyAtFirst) this.repositories.ada.unready("cloning");
    for (let i = 0; i < plan.workers; i += 1) this.startWorker();
    for (let i = 0; i < 2; i += 1) this.startHost();
  }

  note(line: string): void {
    this.history.note(`${this.steps} t=${this.scheduler.now} ${line}`);
  }

  // ── processes ──────────────────────────────────────────────────────────────────────────────────

  startWorker(): WorkerProcess {
    const process: Process = { name: `w${++this.#names}`, alive: true, skewMs: 0 };
    const ledger = this.#ledger(process);
    const queues = queuesOf(this.scheduler, process, this.queues, this.bus, this.redis);
    const worker = new RealWorker({
      ledger,
      queues,
      bots: botNames.map((name) => this.#bot(process, name)),
      log: this.#log(process),
      concurrency: 4,
      observeEveryMs: 0,
    });
    const started: WorkerProcess = Object.assign(process, { worker, stays: new Set<Stay>() });
    void queues.events.onSignal((session) => worker.world.stays.signal(session));
    this.workers.push(started);
    return started;
  }

  startHost(): HostProcess {
    const process: Process = { name: `h${++this.#names}`, alive: true, skewMs: 0 };
    const ledger = this.#ledger(process);
    const queues = queuesOf(this.scheduler, process, this.queues, this.bus, this.redis);
    const sessions = new HostSessions(ledger, queues);
    const host = Object.assign(process, {
      turns: new HostTurns(ledger, queues),
      sessions,
      inbox: new HostInbox(ledger, queues),
      deadLetters: new HostDeadLetters(ledger, queues, sessions),
    });
    this.hosts.push(host);
    return host;
  }

  kill(process: Process, why: string): void {
    if (!process.alive) return;
    process.alive = false;
    this.note(`KILL ${process.name}: ${why}`);
    const at = this.workers.indexOf(process as WorkerProcess);
    if (at === -1) return;
    for (const stay of (process as WorkerProcess).stays) {
      this.history.disturb(stay.session, true);
      if (!stay.lost) this.queues.vanish(stay.session);
    }
    this.workers.splice(at, 1);
  }

  /** Gives one ready activation to a worker that has no stay of that session (recipe 6). */
  deliver(): boolean {
    if (this.redis.away || this.workers.length === 0) return false;
    const taken = this.queues.takeReady();
    if (taken === undefined) return false;
    const free = this.workers.filter((worker) => ![...worker.stays].some((stay) => stay.session === taken.session));
    if (free.length === 0) {
      this.queues.finish(taken.session, { kind: "delay", ms: 250, reason: "an older stay of this process still returns" }, taken.holder);
      for (const worker of this.workers)
        for (const stay of worker.stays) if (stay.session === taken.session) this.#abort(stay, "lease_lost");
      return true;
    }
    this.#run(this.chance.pick(free), taken);
    return true;
  }

  loseLease(stay: Stay, noticed: boolean): void {
    if (stay.lost) return;
    stay.lost = true;
    this.history.disturb(stay.session);
    this.note(`LEASE LOST ${stay.session}${noticed ? "" : " (unnoticed)"}`);
    this.queues.vanish(stay.session, true);
    if (noticed) this.#abort(stay, "lease_lost");
  }

  /** Redis is lost whole and comes back empty: no stay holds a lock any more. */
  emptyRedis(): void {
    this.note("REDIS EMPTIED");
    for (const worker of this.workers)
      for (const stay of worker.stays) {
        stay.lost = true;
        this.history.disturb(stay.session);
      }
    this.queues.empty();
    this.bus.reconnected();
  }

  /** Redis does not answer for a while. */
  redisGoes(ms: number): void {
    this.redis.away = true;
    this.bus.away = true;
    void this.scheduler
      .systemOf(this.#redisProcess)
      .sleep(ms)
      .then(() => this.redisReturns());
  }

  redisReturns(): void {
    this.redis.away = false;
    this.bus.away = false;
    this.bus.reconnected();
  }

  drain(worker: WorkerProcess): void {
    this.note(`DRAIN ${worker.name}`);
    for (const stay of worker.stays) {
      this.history.disturb(stay.session);
      this.#abort(stay, "draining");
    }
  }

  #abort(stay: Stay, code: "lease_lost" | "draining"): void {
    this.history.disturb(stay.session);
    stay.abort.abort(new HeadfastError(code, code));
  }

  #run(process: WorkerProcess, taken: NonNullable<ReturnType<MemoryQueues["takeReady"]>>): void {
    const stay: Stay = { session: taken.session, holder: taken.holder, abort: new AbortController(), lost: false };
    const lease: Lease = { session: taken.session, signal: stay.abort.signal, stall: taken.stall, fresh: taken.fresh };
    process.stays.add(stay);
    this.history.beginStay(process.name, taken.session);
    this.note(`STAY ${process.name} ${taken.session}`);
    void process.worker.activate(lease).then((end) => {
      if (!process.alive) return;
      process.stays.delete(stay);
      const applied = this.queues.finish(stay.session, end, stay.holder);
      this.note(
        `END ${process.name} ${stay.session} ${end.kind}${end.kind === "delay" ? ` ${Math.round(end.ms)} ${end.reason}` : ""}${applied ? "" : " (refused)"}`,
      );
    });
  }

  // ── operations ─────────────────────────────────────────────────────────────────────────────────

  /** Applies one pending operation, with the fault that chance gives it. False: there was none. */
  async operate(): Promise<boolean> {
    const operation = this.scheduler.take();
    if (operation === undefined) return false;
    if (!this.calm && operation.process.name.startsWith("w") && this.chance.is(this.plan.crash)) return this.#crashAt(operation);
    if (!this.calm && this.#tentative && this.chance.is(this.plan.failover)) {
      this.#tentative = false;
      this.note("FAILOVER");
      this.store.failover();
    }
    this.#setMode(operation);
    this.note(`${operation.process.name} ${operation.label}${this.store.mode === "ack" ? "" : ` [${this.store.mode}]`}`);
    operation.apply().then(operation.resolve, operation.reject);
    this.store.mode = "ack";
    await this.onApplied(operation);
    return true;
  }

  async #crashAt(operation: Operation): Promise<boolean> {
    const inside = this.chance.is(0.5);
    if (inside) {
      operation.apply().catch(() => undefined);
      await this.onApplied(operation);
    }
    this.kill(operation.process, `${inside ? "inside" : "before"} ${operation.label}`);
    return true;
  }

  #setMode({ kind }: Operation): void {
    if (this.calm || (kind !== "read" && kind !== "write")) return;
    const { failBefore, loseAnswer, tentative, readFails } = this.plan;
    if (kind === "read") this.store.mode = this.chance.is(readFails) ? "fail_before" : "ack";
    else if (this.chance.is(failBefore)) this.store.mode = "fail_before";
    else if (this.chance.is(loseAnswer)) this.store.mode = "lose_answer";
    else if (this.chance.is(tentative)) {
      this.store.mode = "tentative";
      this.#tentative = true;
    }
  }

  // ── parts ──────────────────────────────────────────────────────────────────────────────────────

  #ledger(process: Process): Ledger {
    return {
      store: storeOf(this.scheduler, process, this.store),
      system: this.scheduler.systemOf(process),
      worker: process.name,
      shardOf: (session) => this.queues.shardOf(session),
    };
  }

  #bot(process: Process, name: SimulatedBot): Bot {
    return {
      name,
      model: simulatedModel(
        {
          plan: this.plan,
          chance: this.chance,
          scheduler: this.scheduler,
          history: this.history,
          calm: () => this.calm,
          kill: (victim, why) => this.kill(victim, why),
          onCall: (call) => this.onCall(call),
          steps: () => this.steps,
        },
        process,
        name,
      ),
      tools: [this.#writeTool(name)],
      rolePrompts: [`You are a simulated bot. Your Memory Repository is at /memory.`],
      memory: this.#observed(process, name),
      attemptsMax: 3,
      onDead: this.plan.onDead,
    };
  }

  #observed(process: Process, name: SimulatedBot): Bot["memory"] {
    return repositoryOf(this.scheduler, process, this.repositories[name]);
  }

  #writeTool(bot: SimulatedBot): Tool {
    return {
      name: "write",
      description: "Writes a file.",
      inputSchema: { type: "object", properties: { path: { type: "string" }, text: { type: "string" } } },
      run: async (args, context) => {
        const { path, text } = args as { path: string; text: string };
        const bytes = Buffer.from(text);
        this.ownWrites.push({ session: context.session, bot, path, blob: await this.repositories[bot].blobOf(path, bytes) });
        await context.memory?.write(path, bytes);
        return "written";
      },
    };
  }

  #log(process: Process): Logger {
    const line = (level: string) => (data: Record<string, unknown>, message: string) => {
      if (level === "error") this.history.note(`${this.steps} ${process.name} LOG ${level} ${message} ${JSON.stringify(data)}`);
    };
    return { debug: line("debug"), info: line("info"), warn: line("warn"), error: line("error") };
  }
}
