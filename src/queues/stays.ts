/**
 * The stays of one process: which sessions run here, under which lease. One stay of a session at a time, also where
 * BullMQ overlaps two after an outage; and a lease that is not renewed in time is taken for lost by the clock, whatever
 * Redis says later.
 */
import { LRUCache } from "lru-cache";
import { HeadfastError } from "../domain/errors.ts";
import type { SessionId } from "../domain/ids.ts";
import { limits } from "../domain/limits.ts";
import type { System } from "../domain/ports.ts";
import { Stay } from "./stay.ts";

export class Stays {
  readonly #system: System;
  readonly #bySession = new Map<SessionId, Stay>();
  /** Stalls that are nobody's crash, for their holder went on living here: by session the job, and up to which count. */
  readonly #own = new LRUCache<SessionId, { job: string; count: number }>({ max: limits.ownStallsMax });
  readonly #stop = new AbortController();
  #watching: Promise<void> | undefined;

  constructor(system: System) {
    this.#system = system;
  }

  get size(): number {
    return this.#bySession.size;
  }

  /** Begins a stay; undefined while another one of the session has not returned, which is aborted. */
  begin(session: SessionId, job: string, stalls: number): Stay | undefined {
    const before = this.#bySession.get(session);
    if (before !== undefined) {
      this.#lose(before, "another stay of this session began");
      this.#own.set(session, { job, count: stalls });
      return undefined;
    }
    const stay = new Stay(session, job, stalls, this.#system.monotonic());
    this.#bySession.set(session, stay);
    this.#watching ??= this.#watch();
    return stay;
  }

  /** The stay has returned. `over`: its activation ended with it. */
  end(stay: Stay, over: boolean): void {
    this.#bySession.delete(stay.session);
    if (over) this.#own.delete(stay.session);
  }

  /** True where the last stall is that of a holder that went on living in this process: nothing crashed (rule 13). */
  ownStall(stay: Stay): boolean {
    const own = this.#own.get(stay.session);
    return own !== undefined && own.job === stay.job && own.count >= stay.stalls;
  }

  /** Renewals that were asked for at `askedAt`; `lost` are the jobs whose lock is another's, or gone. */
  renewed(jobs: readonly string[], lost: readonly string[], askedAt: number): void {
    const gone = new Set(lost);
    const asked = new Set(jobs);
    for (const stay of this.#bySession.values()) {
      if (gone.has(stay.job)) this.#lose(stay, "its lock in Redis is lost");
      else if (asked.has(stay.job)) stay.renewedAt = askedAt;
    }
  }

  /** Aborts every stay: the worker goes away. */
  drain(): void {
    for (const stay of this.#bySession.values()) {
      stay.end(new HeadfastError("draining", "this worker goes away"));
    }
  }

  close(): void {
    this.#stop.abort();
  }

  async #watch(): Promise<void> {
    while (this.#bySession.size > 0 && !this.#stop.signal.aborted) {
      await this.#system.sleep(limits.leaseCheckMs, this.#stop.signal);
      const oldest = this.#system.monotonic() - limits.lockMs + limits.leaseMarginMs;
      for (const stay of this.#bySession.values()) if (stay.renewedAt < oldest) this.#lose(stay, "it was not renewed in time");
    }
    this.#watching = undefined;
  }

  /** What a lost lease leads to, a stall, is not the session's fault: this process goes on. */
  #lose(stay: Stay, why: string): void {
    if (stay.ended !== undefined) return;
    this.#own.set(stay.session, { job: stay.job, count: stay.stalls + 1 });
    stay.end(new HeadfastError("lease_lost", `the lease of this session is lost: ${why}`));
  }
}
