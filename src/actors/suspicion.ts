/**
 * Which turn kills its process (rule 13). A takeover charges the head one crash; from then on the turn is a suspect: it
 * is marked before it runs, a process runs one suspect at a time, and only a marked turn is charged again. So a turn
 * that kills its process ends as a dead letter, and its neighbours do not (I12).
 */
import type { Cause } from "../domain/errors.ts";
import { limits } from "../domain/limits.ts";
import type { Lease } from "../domain/ports.ts";
import type { Turn } from "../domain/records.ts";
import type { SessionWorld } from "./world.ts";

export type Admission = { kind: "run" } | { kind: "dead"; cause: Cause } | { kind: "delay"; ms: number; reason: string };

export class Suspicion {
  readonly #world: SessionWorld;
  readonly #lease: Lease;
  #held = false;

  constructor(world: SessionWorld, lease: Lease) {
    this.#world = world;
    this.#lease = lease;
  }

  async admit(turn: Turn, charge: boolean): Promise<Admission> {
    const crashes = charge ? await this.#charge(turn) : turn.crashes;
    if (crashes >= limits.crashesMax) return { kind: "dead", cause: crashLimit(turn, crashes, this.#world.ledger.system.now()) };
    if (crashes === 0) return { kind: "run" };
    const { suspect, ledger } = this.#world;
    if (suspect.session !== null) return { kind: "delay", ms: limits.outageMsMin, reason: "another suspect runs here" };
    suspect.session = turn.session;
    this.#held = true;
    await ledger.store.turns.setStartMark(turn.session, turn.number, ledger.worker);
    return { kind: "run" };
  }

  /** An orderly end, whatever it was, clears the mark. */
  async release(turn: Turn): Promise<void> {
    if (!this.#held) return;
    this.#held = false;
    this.#world.suspect.session = null;
    if (this.#lease.signal.aborted && this.#lease.signal.reason?.code !== "draining") return;
    try {
      await this.#world.ledger.store.turns.setStartMark(turn.session, turn.number, null);
    } catch (error) {
      // A mark left standing can only charge a turn that was seen to crash before; the turn's own end is not its business.
      this.#world.log.warn({ session: turn.session, error: String(error) }, "the mark of a suspect could not be cleared");
    }
  }

  async #charge(turn: Turn): Promise<number> {
    const { stall } = this.#lease;
    const known = turn.stallSeen?.job === stall.job ? turn.stallSeen.count : 0;
    if (stall.count <= known) return turn.crashes;
    const guilty = !stall.excused && (turn.crashes === 0 || turn.startMark !== null);
    await this.#world.ledger.store.turns.addCrash(
      turn.session,
      turn.number,
      turn.stallSeen,
      { job: stall.job, count: stall.count },
      guilty ? 1 : 0,
    );
    return turn.crashes + (guilty ? 1 : 0);
  }
}

/** All that the turn itself knows of its fatal ends, and who knows more. A worker's name is host, process id and start. */
function crashLimit({ acceptedAt, startMark, attempts }: Turn, crashes: number, now: number): Cause {
  const last = startMark === null ? "" : `, the last time worker ${startMark}, found gone at ${new Date(now).toISOString()}`;
  const failed = attempts.map(({ number, worker, endedAt }) => `; attempt ${number} failed on worker ${worker} at ${endedAt}`).join("");
  return {
    code: "crash_limit",
    message: `the process died ${crashes} times while this turn, accepted at ${acceptedAt}, ran${last}${failed}. Why, only the process that died could say: look at that worker's own log and exit code before a replay`,
  };
}
