/** One stay of a session in this process. */
import type { HeadfastError } from "../domain/errors.ts";
import type { SessionId } from "../domain/ids.ts";

export class Stay {
  readonly session: SessionId;
  /** The activation's job, and how often it had stalled when the stay began. */
  readonly job: string;
  readonly stalls: number;
  /** On the monotonic clock: when the lock was taken or last renewed, as asked for, not as answered. */
  renewedAt: number;
  #abort: AbortController | undefined;
  #ended: HeadfastError | undefined;

  constructor(session: SessionId, job: string, stalls: number, renewedAt: number) {
    this.session = session;
    this.job = job;
    this.stalls = stalls;
    this.renewedAt = renewedAt;
  }

  /** Why the lease ended, if it did. */
  get ended(): HeadfastError | undefined {
    return this.#ended;
  }

  /** Aborted when the lease ends. Made when it is first asked for: it costs more than all else of a stay. */
  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      if (this.#ended !== undefined) this.#abort.abort(this.#ended);
    }
    return this.#abort.signal;
  }

  /** Ends the lease; the first reason stands. */
  end(reason: HeadfastError): void {
    if (this.#ended !== undefined) return;
    this.#ended = reason;
    this.#abort?.abort(reason);
  }
}
