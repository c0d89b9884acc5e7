/**
 * What a provider's "later" means for every session of this worker that shares its limit: no call until the window is
 * over, then one alone to see whether it is, and on success all again. Nobody waits inside: who finds the gate shut is
 * told for how long, and puts the session off.
 */
import { HeadfastError } from "../domain/errors.ts";
import { limits } from "../domain/limits.ts";
import type { System } from "../domain/ports.ts";

interface Window {
  until: number;
  probing: boolean;
}

export class ProviderGate {
  readonly #windows = new Map<string, Window>();
  readonly #system: System;

  constructor(system: System) {
    this.#system = system;
  }

  /** Runs the call if the gate is open, or as its probe. @throws `model_later` with the wait, spending no attempt (I12). */
  async pass<T>(key: string, call: () => Promise<T>): Promise<T> {
    const window = this.#windows.get(key);
    if (window === undefined) return this.#watched(key, call);
    const rest = window.until - this.#system.monotonic();
    if (rest > 0 || window.probing) throw shut(key, Math.max(rest, limits.outageMsMin));
    window.probing = true;
    try {
      const result = await this.#watched(key, call);
      this.#windows.delete(key);
      return result;
    } catch (error) {
      // A probe that came to an end of its own says that the provider answers again.
      if (this.#windows.get(key) === window) this.#windows.delete(key);
      throw error;
    }
  }

  async #watched<T>(key: string, call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof HeadfastError) || error.code !== "model_later") throw error;
      const ms = laterMs(error.retryAfterMs);
      this.#windows.set(key, { until: this.#system.monotonic() + ms, probing: false });
      throw new HeadfastError("model_later", error.message, { cause: error, retryAfterMs: ms, data: error.data });
    }
  }
}

/** The wait in milliseconds: absent, negative or absurd values become something sensible, within `limits.laterMsMax`. */
export function laterMs(asked: number | undefined): number {
  if (asked === undefined || !Number.isFinite(asked) || asked < 0) return limits.laterMsDefault;
  return Math.min(Math.max(asked, limits.outageMsMin), limits.laterMsMax);
}

function shut(key: string, ms: number): HeadfastError {
  return new HeadfastError("model_later", `the provider limit ${JSON.stringify(key)} asks for a wait`, {
    retryAfterMs: ms,
    data: { limitKey: key },
  });
}
