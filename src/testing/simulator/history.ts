/** What the simulator knows from outside: who asked for what, and which faults were injected. Checkers judge by it. */

import type { BotName, SessionId, TurnId } from "../../domain/ids.ts";
import type { TurnRef } from "../../domain/records.ts";
import type { Ended } from "../../host/turn-watch.ts";

export interface SendRecord {
  session: SessionId;
  turnId: TurnId;
  input: string;
  startedAt: number;
  /** Step of the simulation at which it was acknowledged. */
  acknowledgedAt: number | null;
}

export interface CallRecord {
  process: string;
  session: SessionId;
  turnId: TurnId;
  step: number;
  body: string;
  result: "ok" | "failed" | "later" | "refused" | "hung" | "died";
  at: number;
}

export interface Injected {
  /** Failures of the model that count as attempts, per generation. */
  failures: number;
  /** Final refusals. */
  refusals: number;
}

export class History {
  readonly sends: SendRecord[] = [];
  readonly calls: CallRecord[] = [];
  readonly ends = new Map<string, Ended[]>();
  /** Moments that excuse a repeated call: a stay of the session died, lost its lease or was overtaken. */
  readonly disturbances = new Map<SessionId, number>();
  readonly crashes = new Map<SessionId, number>();
  readonly #injected = new Map<string, Injected>();
  readonly reowned: { session: SessionId; to: BotName }[] = [];
  readonly replayed: (TurnRef & { session: SessionId })[] = [];
  readonly trace: string[] = [];
  /** Operations so far. */
  step = 0;

  injected(session: SessionId, turnId: TurnId): Injected {
    const key = JSON.stringify([session, turnId]);
    const known = this.#injected.get(key) ?? { failures: 0, refusals: 0 };
    this.#injected.set(key, known);
    return known;
  }

  disturb(session: SessionId, crash = false): void {
    this.disturbances.set(session, (this.disturbances.get(session) ?? 0) + 1);
    if (crash) this.crashes.set(session, (this.crashes.get(session) ?? 0) + 1);
  }

  readonly #stays = new Map<string, number>();

  beginStay(process: string, session: SessionId): void {
    this.#stays.set(JSON.stringify([process, session]), this.step);
  }

  /** The step at which the process last began a stay of the session. */
  stayBegan(process: string, session: SessionId): number {
    return this.#stays.get(JSON.stringify([process, session])) ?? 0;
  }

  note(line: string): void {
    this.trace.push(line);
  }
}
