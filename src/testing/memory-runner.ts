/** The worker loop of the in-memory queues: pulls activations with a concurrency, one stay of a session at a time. */
import { HeadfastError } from "../domain/errors.ts";
import type { SessionId } from "../domain/ids.ts";
import type { ActivationEnd, ActivationHandler, ActivationRunner, System } from "../domain/ports.ts";
import type { MemoryActivations, TakenActivation } from "./memory-activations.ts";

/** Wait before a second stay of a session in this process is offered again. */
const besideMs = 250;
/** Wait before a stay that broke without saying how it ended is offered again. */
const brokenMs = 1_000;

interface Stay {
  lease: AbortController;
  ended: Promise<void>;
}

export class MemoryRunner implements ActivationRunner {
  readonly #activations: MemoryActivations;
  readonly #system: System;
  readonly #handler: ActivationHandler;
  readonly #concurrency: number;
  readonly #changed: () => void;
  readonly #stays = new Map<SessionId, Stay>();
  #closing = false;
  #alarm: { due: number; cancel: AbortController } | undefined;

  /** `changed` is called after each end, so that other runners of the same queue look too. */
  constructor(activations: MemoryActivations, system: System, handler: ActivationHandler, concurrency: number, changed: () => void) {
    this.#activations = activations;
    this.#system = system;
    this.#handler = handler;
    this.#concurrency = concurrency;
    this.#changed = changed;
  }

  /** Starts what is ready, and sees that it looks again when the next delay is over. */
  pump(): void {
    if (this.#closing) return;
    while (this.#stays.size < this.#concurrency) {
      const taken = this.#activations.take();
      if (taken === undefined) break;
      this.#start(taken);
    }
    this.#setAlarm();
  }

  async close(drainMs: number): Promise<void> {
    this.#closing = true;
    this.#alarm?.cancel.abort();
    const all = Promise.all([...this.#stays.values()].map((stay) => stay.ended));
    const drained = new AbortController();
    await Promise.race([all.then(() => drained.abort()), this.#system.sleep(drainMs, drained.signal)]);
    for (const stay of this.#stays.values()) stay.lease.abort(new HeadfastError("draining", "this worker goes away"));
    await all;
  }

  #start(taken: TakenActivation): void {
    const before = this.#stays.get(taken.session);
    if (before !== undefined) {
      before.lease.abort(new HeadfastError("lease_lost", "another stay of this session began"));
      this.#activations.finish(taken.session, { kind: "delay", ms: besideMs, reason: "the stay before has not ended" }, taken.holder);
      return;
    }
    const lease = new AbortController();
    this.#stays.set(taken.session, { lease, ended: this.#run(taken, lease) });
  }

  async #run(taken: TakenActivation, lease: AbortController): Promise<void> {
    const end = await this.#handled(taken, lease);
    this.#stays.delete(taken.session);
    this.#activations.finish(taken.session, end, taken.holder);
    this.#changed();
  }

  async #handled(taken: TakenActivation, lease: AbortController): Promise<ActivationEnd> {
    // A stay never starts inside the call that woke it.
    await Promise.resolve();
    try {
      return await this.#handler({ session: taken.session, signal: lease.signal, stall: taken.stall, fresh: taken.fresh });
    } catch (error) {
      return { kind: "delay", ms: brokenMs, reason: String(error) };
    }
  }

  #setAlarm(): void {
    const due = this.#activations.nextDue();
    if (due === this.#alarm?.due) return;
    this.#alarm?.cancel.abort();
    this.#alarm = undefined;
    if (due === undefined) return;
    const cancel = new AbortController();
    this.#alarm = { due, cancel };
    void this.#system.sleep(Math.max(1, due - this.#system.now()), cancel.signal).then(() => {
      if (cancel.signal.aborted) return;
      this.#alarm = undefined;
      this.pump();
    });
  }
}
