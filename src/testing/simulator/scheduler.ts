/**
 * Decides which pending operation happens next. Every call over a port waits here until the seed picks it, so the seed
 * decides each interleaving; time is virtual and moves only when nothing else is picked. A process that is killed never
 * hears of its pending operations again.
 */
import type { System } from "../../domain/ports.ts";
import type { Chance } from "./chance.ts";

/** A simulated process: worker or host. */
export interface Process {
  name: string;
  alive: boolean;
  /** How far its wall clock is off, in milliseconds. */
  skewMs: number;
}

export interface Operation {
  process: Process;
  label: string;
  /** What kind of fault may meet it. */
  kind: "read" | "write" | "queue" | "model" | "memory";
  apply(): Promise<unknown>;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

interface Timer {
  process: Process;
  at: number;
  wake(): void;
}

export class Scheduler {
  /** Virtual milliseconds since the start. */
  now = 1_000_000;
  readonly operations: Operation[] = [];
  readonly #timers = new Set<Timer>();
  readonly #chance: Chance;
  #ids = 0;

  constructor(chance: Chance) {
    this.#chance = chance;
  }

  /** A call over a port: settles when the scheduler has picked it. */
  call<T>(process: Process, label: string, kind: Operation["kind"], apply: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (!process.alive) return new Promise(() => undefined);
    return new Promise<T>((resolve, reject) => {
      const withdraw = (): void => this.#withdraw(operation, signal?.reason);
      const done = (value: unknown): void => {
        signal?.removeEventListener("abort", withdraw);
        resolve(value as T);
      };
      const operation: Operation = { process, label, kind, apply, resolve: done, reject };
      this.operations.push(operation);
      signal?.addEventListener("abort", withdraw, { once: true });
    });
  }

  /** Takes a pending operation out, by chance. */
  take(): Operation | undefined {
    while (this.operations.length > 0) {
      const [operation] = this.operations.splice(this.#chance.below(this.operations.length), 1);
      if (operation?.process.alive) return operation;
    }
    return undefined;
  }

  get hasTimers(): boolean {
    return this.#timers.size > 0;
  }

  /** Moves time to the earliest timer, and wakes it. */
  advance(): boolean {
    let earliest: Timer | undefined;
    for (const timer of this.#timers) {
      if (!timer.process.alive) this.#timers.delete(timer);
      else if (earliest === undefined || timer.at < earliest.at) earliest = timer;
    }
    if (earliest === undefined) return false;
    this.#timers.delete(earliest);
    this.now = Math.max(this.now, earliest.at);
    earliest.wake();
    return true;
  }

  /** When the earliest timer is due. */
  nextTimer(): number | undefined {
    let at: number | undefined;
    for (const timer of this.#timers) if (timer.process.alive && (at === undefined || timer.at < at)) at = timer.at;
    return at;
  }

  /** The clock, sleep, ids and chance of one process. */
  systemOf(process: Process): System {
    return {
      now: () => this.now + process.skewMs,
      monotonic: () => this.now,
      random: () => this.#chance.next(),
      id: () => `id-${process.name}-${String(++this.#ids).padStart(8, "0")}`.split("").reverse().join(""),
      sleep: (ms, signal) => this.#sleep(process, ms, signal),
    };
  }

  #sleep(process: Process, ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const done = (): void => {
        this.#timers.delete(timer);
        signal?.removeEventListener("abort", done);
        resolve();
      };
      const timer: Timer = { process, at: this.now + ms, wake: done };
      this.#timers.add(timer);
      signal?.addEventListener("abort", done, { once: true });
    });
  }

  #withdraw(operation: Operation, reason: unknown): void {
    const at = this.operations.indexOf(operation);
    if (at === -1) return;
    this.operations.splice(at, 1);
    operation.reject(reason);
  }
}

/** Lets everything run that waits for nothing but its turn. */
export function settle(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
