/**
 * What an activation sees of its turn queue: a few heads, and what is to be removed. The queue is a hint and a cache;
 * turns that another client added are stored here, before they count for anything (rule 11).
 */
import { checkTurnRequest, claimSession, freshTurn, placeTurn, type TurnRequest } from "../domain/acceptance.ts";
import { hasOutcome } from "../domain/checkpoint.ts";
import { HeadfastError, isHeadfastError } from "../domain/errors.ts";
import type { SessionId } from "../domain/ids.ts";
import type { Ledger, Logger, QueuedTurn, Queues, RefusedJob } from "../domain/ports.ts";
import { sha256 } from "../domain/prefix.ts";
import type { Checkpoint, Turn } from "../domain/records.ts";

/** A job of the queue with the turn that MongoDB has under its number. */
type Head = { jobId: string; turn: Turn };

export class MailboxView {
  readonly #session: SessionId;
  readonly #ledger: Ledger;
  readonly #queues: Queues;
  readonly #log: Logger;
  #heads: Head[] = [];
  #remove: string[] = [];

  constructor(session: SessionId, ledger: Ledger, queues: Queues, log: Logger) {
    this.#session = session;
    this.#ledger = ledger;
    this.#queues = queues;
    this.#log = log;
  }

  /** Reads the heads, removing at the same time what has an outcome. */
  async refresh(): Promise<void> {
    const remove = this.#remove;
    this.#remove = [];
    await this.#take(remove.length === 0 ? await this.#queues.peek(this.#session) : await this.#queues.settle(this.#session, remove));
  }

  /** Removes what is left over; the queue's last keys go with it (I10). */
  async flush(): Promise<void> {
    if (this.#remove.length > 0) await this.refresh();
  }

  /** The turn of that number as it was read with the heads, if it is here. */
  find(number: number): Turn | undefined {
    return this.#heads.find((head) => head.turn.number === number)?.turn;
  }

  get empty(): boolean {
    return this.#heads.length === 0;
  }

  /** Notes every head that has an outcome for removal. */
  drop(checkpoint: Checkpoint): void {
    const ended = this.#heads.filter((head) => hasOutcome(checkpoint, head.turn.number));
    if (ended.length === 0) return;
    this.#remove.push(...ended.map((head) => head.jobId));
    this.#heads = this.#heads.filter((head) => !hasOutcome(checkpoint, head.turn.number));
  }

  get pendingRemovals(): number {
    return this.#remove.length;
  }

  async #take(found: (QueuedTurn | RefusedJob)[]): Promise<void> {
    const known = await Promise.all(found.map((job) => this.#known(job)));
    const heads: Head[] = [];
    for (const [i, job] of found.entries()) {
      const turn = known[i];
      if ("refused" in job) await this.#refuse(job);
      else if (turn !== undefined) heads.push({ jobId: job.jobId, turn });
      else heads.push(...(await this.#accept(job)));
    }
    this.#heads = heads;
  }

  /** What a job says of its number is believed only if MongoDB has this very turn under it (I4). */
  async #known(job: QueuedTurn | RefusedJob): Promise<Turn | undefined> {
    if ("refused" in job || job.number === undefined) return undefined;
    const turn = await this.#ledger.store.turns.byNumber(this.#session, job.number);
    return turn?.turnId === job.turnId && turn.generation === job.generation ? turn : undefined;
  }

  /** A turn of another client is acknowledged, and gets its number, here. */
  async #accept(job: QueuedTurn): Promise<Head[]> {
    try {
      if (job.generation !== 0) throw new HeadfastError("invalid_input", "generation: no such replay was asked for");
      const request = checkTurnRequest(requestOf(this.#session, job));
      const owner = await claimSession(this.#ledger, request.session, request.bot);
      const { turn, duplicate } = await placeTurn(this.#ledger, freshTurn(this.#ledger, request, job.generation), owner.lastNumber);
      if (duplicate && turn.inputSha256 !== sha256(request.input)) {
        await this.#refuse({
          jobId: job.jobId,
          refused: "turn_id_reused: the session has another input under this turn_id",
          raw: JSON.stringify(job),
        });
        return [];
      }
      return [{ jobId: job.jobId, turn }];
    } catch (error) {
      if (!isHeadfastError(error) || error.kind !== "terminal") throw error;
      await this.#refuse({ jobId: job.jobId, refused: `${error.code}: ${error.message}`, raw: JSON.stringify(job) });
      return [];
    }
  }

  /** Kept whole as a letter of its own, then taken out of the way (I11). */
  async #refuse(job: RefusedJob): Promise<void> {
    this.#log.warn({ session: this.#session, job: job.jobId, reason: job.refused }, "a job of the turn queue is refused");
    await this.#queues.letters.putRefused(this.#session, job);
    this.#remove.push(job.jobId);
  }
}

function requestOf(session: SessionId, job: QueuedTurn): TurnRequest {
  const { bot, turnId, input, user, deliverTo, traceparent } = job;
  return {
    bot,
    session,
    turnId,
    input: input as string,
    ...(user && { user }),
    ...(deliverTo && { deliverTo }),
    ...(traceparent && { traceparent }),
  };
}
