/**
 * Group commit. What callers ask for at about the same time goes to the server in one command, and each is answered by
 * itself. A call joins a batch only before that is sent, so what it reads or writes happens after it was made; what comes
 * while enough batches are out forms the next one, so batches grow with the load and a lone call waits for nobody. No
 * timers: a batch is sent at the end of the event loop's turn in which its first call came.
 */
import { limits } from "../domain/limits.ts";

/** How one call of a batch ended. */
export type Outcome<R> = { value: R } | { error: unknown };

/** Sends one command for all; one outcome for each, in their order. Where it rejects, all are rejected with that. */
export type Send<C, R> = (calls: readonly C[]) => Promise<readonly Outcome<R>[]>;

interface Waiting<C, R> {
  call: C;
  bytes: number;
  resolve(value: R): void;
  reject(error: unknown): void;
}

/** One kind of calls on one collection. */
export class Batches<C, R> {
  readonly #send: Send<C, R>;
  readonly #monotonic: () => number;
  readonly #most: number;
  #waiting: Waiting<C, R>[] = [];
  #scheduled = false;
  #out = 0;
  #sentAt = 0;

  /** `most`: calls in one batch. */
  constructor(send: Send<C, R>, monotonic: () => number, most: number) {
    this.#send = send;
    this.#monotonic = monotonic;
    this.#most = most;
  }

  /** `bytes`: what the call adds to the message; 0 where that does not matter. */
  add(call: C, bytes: number): Promise<R> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ call, bytes, resolve, reject });
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#scheduled || this.#waiting.length === 0 || !this.#mayGo()) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      while (this.#waiting.length > 0 && this.#mayGo()) void this.#go(this.#take());
    });
  }

  /** Batches that get no answer do not hold back the calls that come after them. */
  #mayGo(): boolean {
    return this.#out < limits.storeBatchesOutMax || this.#monotonic() - this.#sentAt >= limits.storeBatchHeldMs;
  }

  /** The longest waiting, at least one, within the limits. */
  #take(): Waiting<C, R>[] {
    let bytes = 0;
    const end = this.#waiting.findIndex((one, n) => {
      bytes += one.bytes;
      return n > 0 && (n >= this.#most || bytes > limits.storeBatchBytesMax);
    });
    return this.#waiting.splice(0, end === -1 ? this.#waiting.length : end);
  }

  async #go(batch: Waiting<C, R>[]): Promise<void> {
    this.#out += 1;
    this.#sentAt = this.#monotonic();
    const outcomes = await this.#outcomes(batch);
    this.#out -= 1;
    for (const [n, one] of batch.entries()) {
      const outcome = outcomes[n] as Outcome<R>;
      if ("error" in outcome) one.reject(outcome.error);
      else one.resolve(outcome.value);
    }
    this.#schedule();
  }

  async #outcomes(batch: Waiting<C, R>[]): Promise<readonly Outcome<R>[]> {
    try {
      return await this.#send(batch.map((one) => one.call));
    } catch (error) {
      return batch.map(() => ({ error }));
    }
  }
}
