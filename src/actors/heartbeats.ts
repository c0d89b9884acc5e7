/** Tells that turns still run: one timer for all of a process, and none while nothing runs (I10). */
import { limits } from "../domain/limits.ts";
import type { System } from "../domain/ports.ts";
import { finished } from "./timeout.ts";

export class Heartbeats {
  readonly #system: System;
  readonly #running = new Set<() => void>();
  #stop: AbortController | null = null;

  constructor(system: System) {
    this.#system = system;
  }

  /** Calls `beat` every `limits.heartbeatMs`, the first time within that, until the answer is called. */
  start(beat: () => void): () => void {
    this.#running.add(beat);
    if (this.#stop === null) void this.#loop();
    return () => {
      this.#running.delete(beat);
      if (this.#running.size === 0) this.#stop?.abort(finished);
    };
  }

  async #loop(): Promise<void> {
    const stop = new AbortController();
    this.#stop = stop;
    while (!stop.signal.aborted) {
      await this.#system.sleep(limits.heartbeatMs, stop.signal);
      if (!stop.signal.aborted) for (const beat of this.#running) beat();
    }
    if (this.#stop === stop) this.#stop = null;
    if (this.#running.size > 0 && this.#stop === null) void this.#loop();
  }
}
