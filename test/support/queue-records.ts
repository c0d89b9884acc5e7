/** Turns for tests of the queues, and handlers that can be waited for. */
import type { ActivationEnd, ActivationHandler, Lease, Logger } from "../../src/domain/ports.ts";
import { recordVersion, type Turn } from "../../src/domain/records.ts";

export const quiet: Logger = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

export function turn(session: string, number: number, patch: Partial<Turn> = {}): Turn {
  return {
    v: recordVersion,
    session,
    number,
    turnId: `turn-${number}`,
    generation: 0,
    bot: "ada",
    input: `input ${number}`,
    inputSha256: "",
    acceptedAt: "2026-12-01T10:00:00.000Z",
    writer: "w",
    attempts: [],
    attemptsSpent: 0,
    dueAt: null,
    crashes: 0,
    stallSeen: null,
    startMark: null,
    cancelMark: null,
    open: null,
    outcome: null,
    outcomeSeq: null,
    letter: null,
    ...patch,
  };
}

/** A promise with its ends outside. */
export interface Gate<T = void> {
  promise: Promise<T>;
  open(value: T): void;
}

export function gate<T = void>(): Gate<T> {
  let open: (value: T) => void = () => undefined;
  const promise = new Promise<T>((resolve) => {
    open = resolve;
  });
  return { promise, open };
}

/** A handler that records each stay and lets a test wait until there were so many, in all or of one session. */
export class Stage {
  readonly stays: Lease[] = [];
  /** The most stays of one session that ever were at the same time. */
  most = 0;
  readonly #act: (lease: Lease, nth: number) => Promise<ActivationEnd> | ActivationEnd;
  readonly #running = new Map<string, number>();
  readonly #waiting: { met: () => boolean; resolve: () => void }[] = [];
  #ended = 0;

  /** @param act decides the end of a stay; `nth` counts the stays of its session from 1 */
  constructor(act: (lease: Lease, nth: number) => Promise<ActivationEnd> | ActivationEnd = () => ({ kind: "idle" })) {
    this.#act = act;
  }

  readonly handler: ActivationHandler = async (lease) => {
    const running = (this.#running.get(lease.session) ?? 0) + 1;
    this.#running.set(lease.session, running);
    this.most = Math.max(this.most, running);
    this.stays.push(lease);
    this.#tell();
    try {
      return await this.#act(lease, this.of(lease.session).length);
    } finally {
      this.#running.set(lease.session, (this.#running.get(lease.session) ?? 1) - 1);
      this.#ended += 1;
      this.#tell();
    }
  };

  of(session: string): Lease[] {
    return this.stays.filter((lease) => lease.session === session);
  }

  /** Sessions in the order in which their stays began. */
  get order(): string[] {
    return this.stays.map((lease) => lease.session);
  }

  /** Resolves when so many stays have begun. */
  began(count: number, session?: string): Promise<void> {
    return this.until(() => (session === undefined ? this.stays : this.of(session)).length >= count);
  }

  /** Resolves when so many stays have ended. */
  ended(count: number): Promise<void> {
    return this.until(() => this.#ended >= count);
  }

  /** Resolves when it holds; looked at whenever a stay begins or ends. */
  until(met: () => boolean): Promise<void> {
    if (met()) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push({ met, resolve }));
  }

  #tell(): void {
    for (const one of this.#waiting.filter(({ met }) => met())) {
      this.#waiting.splice(this.#waiting.indexOf(one), 1);
      one.resolve();
    }
  }
}

/** Looks again and again, for what gives no signal. */
export async function eventually(what: string, met: () => Promise<boolean> | boolean, ms = 10_000): Promise<void> {
  const end = performance.now() + ms;
  while (!(await met())) {
    if (performance.now() > end) throw new Error(`not within ${ms} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
