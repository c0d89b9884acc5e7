/**
 * How the demo steers the model in its worker processes: by files. A gate is a file that is not there yet; a call that
 * must be met in its middle says so in a file of its own. So every act waits for what happened, never for a time.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const pollMs = 15;

/** Who is in the middle of a model call. */
export interface Holder {
  worker: string;
  pid: number;
}

export class Signals {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Opens a gate, for good. */
  open(gate: string): void {
    writeFileSync(this.#gate(gate), "");
  }

  isOpen(gate: string): boolean {
    return existsSync(this.#gate(gate));
  }

  /** Resolves when the gate is open, or the signal aborts. */
  async opened(gate: string, signal: AbortSignal): Promise<void> {
    while (!this.isOpen(gate) && !signal.aborted) await sleep(pollMs);
  }

  /** Says that a turn's model call is held up. */
  hold(turnId: string, holder: Holder): void {
    const path = this.#held(turnId);
    writeFileSync(`${path}.${holder.pid}`, JSON.stringify(holder));
    renameSync(`${path}.${holder.pid}`, path); // whole, or not there
  }

  /** Who holds the turn's call. Rejects after half a minute. */
  async held(turnId: string): Promise<Holder> {
    await until(`a worker is in the model call of turn ${turnId}`, () => existsSync(this.#held(turnId)));
    return JSON.parse(readFileSync(this.#held(turnId), "utf8")) as Holder;
  }

  #gate(gate: string): string {
    return join(this.#folder, `gate-${encodeURIComponent(gate)}`);
  }

  #held(turnId: string): string {
    return join(this.#folder, `held-${encodeURIComponent(turnId)}`);
  }
}

/** Resolves when it is so. @throws after `limitMs`, saying what did not come */
export async function until(what: string, isSo: () => boolean | Promise<boolean>, limitMs = 30_000): Promise<void> {
  const late = AbortSignal.timeout(limitMs);
  while (!(await isSo())) {
    if (late.aborted) throw new Error(`waited ${limitMs / 1000} s in vain until ${what}`);
    await sleep(pollMs);
  }
}
