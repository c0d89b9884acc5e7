/**
 * A worker: runs activations of the sessions whose bots it serves, observes their Memory Repositories, and reconciles.
 * Any number of workers may run; none of them is special, and each may vanish at any moment.
 */
import { HeadfastError } from "../domain/errors.ts";
import type { BotName } from "../domain/ids.ts";
import { limits } from "../domain/limits.ts";
import type { ActivationEnd, ActivationRunner, Bot, Lease, Ledger, Logger, Queues } from "../domain/ports.ts";
import type { ManifestEntry, Turn } from "../domain/records.ts";
import { WarmCopies } from "./conversation.ts";
import { Heartbeats } from "./heartbeats.ts";
import { MemoryObserver } from "./observer.ts";
import { ProviderGate } from "./provider-gate.ts";
import { letterFrom, Reconciler } from "./reconciler.ts";
import { SessionActor } from "./session-actor.ts";
import { Settlement } from "./settlement.ts";
import { type SessionWorld, Stays } from "./world.ts";

export interface WorkerOptions {
  ledger: Ledger;
  queues: Queues;
  bots: readonly Bot[];
  log: Logger;
  /** Sessions that run at the same time in this process. */
  concurrency: number;
  /** Look at every bot's Memory Repository this often, in milliseconds; 0 = only at start, before turns and when asked. */
  observeEveryMs: number;
}

export class Worker {
  readonly world: SessionWorld;
  readonly observer: MemoryObserver;
  readonly reconciler: Reconciler;
  /** What happened, by name, since the start. */
  readonly counts = new Map<string, number>();
  readonly #options: WorkerOptions;
  readonly #stopped = new AbortController();
  readonly #loops: Promise<void>[] = [];
  readonly #closers: (() => Promise<void>)[] = [];
  #runner: ActivationRunner | null = null;

  constructor(options: WorkerOptions) {
    this.#options = options;
    const { ledger, queues, log } = options;
    const bots = botsByName(options.bots);
    const manifests = new Map<string, readonly ManifestEntry[]>();
    this.observer = new MemoryObserver(ledger, queues, bots, manifests, log);
    this.reconciler = new Reconciler(ledger, queues, log);
    this.world = {
      ledger,
      queues,
      bots,
      log,
      manifests,
      parts: new Map(),
      reported: new Set(),
      gate: new ProviderGate(ledger.system),
      heartbeats: new Heartbeats(ledger.system),
      settlement: new Settlement(ledger.store, ledger.system, log),
      warm: new WarmCopies(),
      stays: new Stays(),
      suspect: { session: null },
      count: (what) => this.counts.set(what, (this.counts.get(what) ?? 0) + 1),
      onLook: (bot, seen) => this.observer.sawState(bot, seen),
      letterOf: (turn) => this.#letter(turn),
    };
  }

  /** Starts to take work. */
  async start(): Promise<void> {
    const { queues } = this.#options;
    this.#closers.push(await queues.events.onSignal((session) => this.world.stays.signal(session)));
    const observing = await queues.observations.work(
      [...this.world.bots.keys()],
      async (bot, reason) => void (await this.observer.observe(bot, reason)),
    );
    this.#closers.push(() => observing.close());
    queues.onRestart(() => void this.#reconcile({ olderThanMs: null, letters: true }));
    this.#loops.push(this.#reconcileLoop(), this.#observeLoop());
    for (const bot of this.world.bots.values()) if (bot.memory !== null) await this.#requestLook(bot.name, "start");
    this.#runner = await queues.work((lease) => this.activate(lease), { concurrency: this.#options.concurrency });
  }

  /** One activation; what the queues call. */
  activate(lease: Lease): Promise<ActivationEnd> {
    return new SessionActor(this.world, lease).run();
  }

  /** Takes nothing new, lets what runs finish within `drainMs`, then aborts it; its turns stay first, no attempt spent. */
  async close(drainMs: number = limits.drainMs): Promise<void> {
    this.#stopped.abort();
    await this.#runner?.close(drainMs);
    await Promise.all([...this.#loops, ...this.#closers.map((close) => close())]);
    await this.world.settlement.close();
  }

  async #reconcileLoop(): Promise<void> {
    const { system } = this.#options.ledger;
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      await this.#reconcile({ olderThanMs: limits.reconcileMs / 2, letters: false });
      await system.sleep(limits.reconcileMs * (0.8 + 0.4 * system.random()), signal);
    }
  }

  async #reconcile(options: { olderThanMs: number | null; letters: boolean }): Promise<void> {
    try {
      await this.reconciler.pass(options);
    } catch (error) {
      this.#options.log.warn({ error: String(error) }, "the reconciler could not finish its pass; the next one goes on");
    }
  }

  async #observeLoop(): Promise<void> {
    const { system } = this.#options.ledger;
    const { signal } = this.#stopped;
    const every = this.#options.observeEveryMs;
    while (every > 0 && !signal.aborted) {
      await system.sleep(every, signal);
      if (signal.aborted) return;
      for (const bot of this.world.bots.values()) if (bot.memory !== null) await this.#requestLook(bot.name, "schedule");
    }
  }

  async #requestLook(bot: BotName, reason: string): Promise<void> {
    try {
      await this.#options.queues.observations.request(bot, reason);
    } catch (error) {
      this.#options.log.warn(
        { bot, error: String(error) },
        "a look at the Memory Repository could not be asked for; the one before the next turn makes up for it",
      );
    }
  }

  async #letter(turn: Turn): Promise<void> {
    try {
      const { store } = this.#options.ledger;
      const standing = (await store.turns.byNumber(turn.session, turn.number)) ?? turn;
      const seq = standing.outcomeSeq ?? undefined;
      await this.#options.queues.letters.put(letterFrom(standing, seq === undefined ? undefined : await store.log.get(turn.session, seq)));
    } catch (error) {
      this.#options.log.warn({ session: turn.session, error: String(error) }, "a dead letter is not in its queue yet; the log has it");
    }
  }
}

function botsByName(bots: readonly Bot[]): Map<BotName, Bot> {
  const byName = new Map(bots.map((bot) => [bot.name, bot]));
  if (byName.size !== bots.length) throw new HeadfastError("configuration", "two bots of this worker have the same name");
  return byName;
}
