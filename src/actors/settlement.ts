/**
 * Marks of finished turns and hints of sessions, flushed in bulk off the hot path. All of it is derivable from the log:
 * what a crash loses here, the reconciler finds again. No timer stands while nothing waits (I10).
 */
import type { SessionId } from "../domain/ids.ts";
import { limits } from "../domain/limits.ts";
import type { Logger, SessionHint, SettledMark, Store, System } from "../domain/ports.ts";

export class Settlement {
  #marks: SettledMark[] = [];
  #hints = new Map<SessionId, SessionHint>();
  #flushing: Promise<void> | null = null;
  #timer: AbortController | null = null;
  readonly #store: Store;
  readonly #system: System;
  readonly #log: Logger;

  constructor(store: Store, system: System, log: Logger) {
    this.#store = store;
    this.#system = system;
    this.#log = log;
  }

  /** `hint`: null where the stored one is near enough. */
  add(mark: SettledMark, hint: SessionHint | null): void {
    this.#marks.push(mark);
    if (hint !== null) this.#hints.set(hint.session, hint);
    if (this.#marks.length >= limits.flushMax) void this.flush();
    else this.#arm();
  }

  /** Writes all that waits. Never rejects: what fails is kept for the next time, up to a bound. */
  async flush(): Promise<void> {
    while (this.#flushing !== null) await this.#flushing;
    if (this.#marks.length === 0 && this.#hints.size === 0) return;
    this.#flushing = this.#write();
    await this.#flushing;
    this.#flushing = null;
  }

  async close(): Promise<void> {
    this.#timer?.abort();
    await this.flush();
    this.#timer?.abort();
  }

  #arm(): void {
    if (this.#timer !== null) return;
    const timer = new AbortController();
    this.#timer = timer;
    void this.#system.sleep(limits.flushMs, timer.signal).then(() => {
      this.#timer = null;
      if (!timer.signal.aborted) void this.flush();
    });
  }

  async #write(): Promise<void> {
    const marks = this.#marks;
    const hints = [...this.#hints.values()];
    this.#marks = [];
    this.#hints = new Map();
    try {
      if (marks.length > 0) await this.#store.turns.settle(marks);
      if (hints.length > 0) await this.#store.ownership.touch(hints);
    } catch (error) {
      this.#log.warn({ error: String(error), marks: marks.length }, "marks of finished turns not written; the reconciler will find them");
      if (marks.length < 10 * limits.flushMax) this.#marks.unshift(...marks);
      if (this.#marks.length > 0) this.#arm();
    }
  }
}
