/** What people, hosts, operators and the world do in a simulated run. Each action starts something; the scheduler ends it. */
import { isHeadfastError } from "../../domain/errors.ts";
import type { SendRecord } from "./history.ts";
import { Violation } from "./log-checker.ts";
import type { ActionName } from "./plan.ts";
import { botNames, type HostProcess, type SimulatedBot, type SimulatedWorld } from "./world.ts";

export class Actions {
  readonly #world: SimulatedWorld;
  /** Sent, and how often: a host that is unsure sends again. */
  readonly sends: SendRecord[] = [];
  readonly notes: { session: string; text: string }[] = [];
  /** Anything that failed in a way that no one may fail. */
  readonly failures: Violation[] = [];
  #files = 0;

  constructor(world: SimulatedWorld) {
    this.#world = world;
  }

  get #chance(): SimulatedWorld["chance"] {
    return this.#world.chance;
  }

  #host(): HostProcess {
    return this.#chance.pick(this.#world.hosts);
  }

  #session(): string {
    return this.#chance.pick(this.#world.plan.sessions);
  }

  /** The next turn of a session. */
  send(session: string, number: number): void {
    const killer = this.#world.plan.killer && number === 2;
    const turnId = `${killer ? "killer" : "t"}${number}`;
    const record: SendRecord = { session, turnId, input: `input ${number}`, startedAt: this.#world.steps, acknowledgedAt: null };
    this.sends.push(record);
    this.#world.history.sends.push(record);
    this.#sendRecord(record);
  }

  #sendRecord(record: SendRecord, tries = 0): void {
    const host = this.#host();
    const { session, turnId, input } = record;
    const sent = this.#owner(session).then((bot) => host.turns.send({ bot, session, turnId, input }));
    sent.then(
      () => {
        if (record.acknowledgedAt !== null) return;
        record.acknowledgedAt = this.#world.steps;
        this.#world.note(`ACK ${session} ${turnId}`);
        this.#wait(record);
      },
      (error: unknown) => {
        if (!isHeadfastError(error, "store_unavailable", "ownership_conflict"))
          this.#fail("I11", `a good turn was refused: ${String(error)}`);
        else if (tries < 50) this.#sendRecord(record, tries + 1); // a host retries what it is unsure of
      },
    );
  }

  #wait(record: SendRecord): void {
    const key = JSON.stringify([record.session, record.turnId]);
    this.#host()
      .turns.wait({ session: record.session, turnId: record.turnId })
      .then(
        (ended) => this.#world.history.ends.set(key, [...(this.#world.history.ends.get(key) ?? []), ended]),
        (error: unknown) => {
          if (isHeadfastError(error, "store_unavailable")) this.#wait(record);
          else this.#fail("I4", `waiting failed: ${String(error)}`);
        },
      );
  }

  async #owner(session: string): Promise<SimulatedBot> {
    const owner = await this.#world.store.ownership.get(session);
    return (owner?.bot as SimulatedBot | undefined) ?? "ada";
  }

  #fail(invariant: string, message: string): void {
    this.failures.push(new Violation(invariant, message));
  }

  /** An operation whose refusal by these codes is fine; anything else is a violation. */
  #start(what: string, work: Promise<unknown>, ...codes: Parameters<typeof isHeadfastError>[1][]): void {
    work.then(
      () => this.#world.note(`OK ${what}`),
      (error: unknown) => {
        if (isHeadfastError(error, "store_unavailable", "queue_unavailable", ...codes)) this.#world.note(`REFUSED ${what}: ${error.code}`);
        else this.#fail("I11", `${what} failed: ${error instanceof Error ? error.stack : String(error)}`);
      },
    );
  }

  run(name: ActionName): void {
    this.#world.note(`ACTION ${name}`);
    this.#table[name]();
  }

  /** Dead letters of the log that a calm operator would deal with. */
  replay(session: string, turnId: string, position: "tail" | "head"): void {
    for (let operators = 1 + this.#chance.below(2); operators > 0; operators -= 1) {
      this.#start(
        `replay ${session} ${turnId} to the ${position}`,
        this.#host().deadLetters.replay(session, turnId, { position, by: "operator" }),
        "dead_letter_not_found",
        "turn_not_found",
        "session_not_found",
      );
    }
  }

  readonly #table: Record<ActionName, () => void> = {
    sendAgain: () => {
      if (this.sends.length === 0) return;
      const { session, turnId, input, acknowledgedAt } = this.#chance.pick(this.sends);
      if (acknowledgedAt === null) return;
      const other = this.#chance.is(0.3);
      const sent = this.#owner(session).then((bot) =>
        this.#host().turns.send({ bot, session, turnId, input: other ? `${input}, changed` : input }),
      );
      const judged = sent.then((answer) => {
        if (other) this.#fail("I4", `${turnId} was accepted with another input`);
        else if (!answer.duplicate) this.#fail("I4", `${turnId} was accepted twice`);
      });
      this.#start(`send ${turnId} again`, judged, "ownership_conflict", ...(other ? (["turn_id_reused"] as const) : []));
    },
    cancel: () => {
      if (this.sends.length === 0) return;
      const { session, turnId } = this.#chance.pick(this.sends);
      this.#start(`cancel ${session} ${turnId}`, this.#host().turns.cancel({ session, turnId }), "turn_not_found", "session_not_found");
    },
    reown: () => {
      const session = this.#session();
      const to = this.#chance.pick(botNames);
      this.#world.history.disturb(session);
      const done = this.#host().sessions.reown(session, to, { by: "operator", why: "simulation" });
      this.#start(
        `reown ${session} to ${to}`,
        done.then(() => this.#world.history.reowned.push({ session, to })),
        "session_not_found",
      );
    },
    replay: () => {
      const { session, turnId } = this.sends.length > 0 ? this.#chance.pick(this.sends) : { session: this.#session(), turnId: "t1" };
      this.replay(session, turnId, this.#chance.pick(["tail", "head", "head"]));
    },
    discard: () => {
      if (this.sends.length === 0) return;
      const { session, turnId } = this.#chance.pick(this.sends);
      this.#start(
        `discard ${turnId}`,
        this.#host().deadLetters.discard(session, turnId, { by: "operator" }),
        "dead_letter_not_found",
        "turn_not_found",
        "session_not_found",
      );
    },
    edit: () => this.#repository().edit(this.#chance.pick(["notes.md", "log.md", "PERSONA.md", "facts.md"]), `edit ${++this.#files}`),
    revert: () => this.#repository().edit("notes.md", "one\n"),
    branch: () => this.#repository().switchTo(this.#chance.pick(["main", "side", null])),
    breakMemory: () => this.#repository().breakWith("the disk is unplugged"),
    ready: () => {
      for (const name of botNames) {
        this.#world.repositories[name].breakWith(null);
        this.#world.repositories[name].unready(null);
      }
    },
    observe: () => {
      const worker = this.#worker();
      if (worker !== undefined) this.#start("observe", worker.worker.observer.observe(this.#chance.pick(botNames), "simulation"));
    },
    post: () => {
      const note = { session: this.#session(), text: `note ${++this.#files}` };
      this.#start(
        "post",
        this.#host()
          .inbox.post(note)
          .then(() => this.notes.push(note)),
        "session_not_found",
      );
    },
    reconcile: () => {
      const worker = this.#worker();
      if (worker !== undefined)
        this.#start("reconcile", worker.worker.reconciler.pass({ olderThanMs: null, letters: this.#chance.is(0.3) }));
    },
    crashWorker: () => {
      const worker = this.#worker();
      if (worker !== undefined) this.#world.kill(worker, "by the plan");
    },
    loseLease: () => {
      const stays = this.#world.workers.flatMap((worker) => [...worker.stays]);
      if (stays.length > 0) this.#world.loseLease(this.#chance.pick(stays), this.#chance.is(0.4));
    },
    drain: () => {
      const worker = this.#worker();
      if (worker !== undefined) this.#world.drain(worker);
    },
    emptyRedis: () => this.#world.emptyRedis(),
    redisAway: () => this.#world.redisGoes(500 + this.#chance.below(5_000)),
    failover: () => (this.#chance.is(0.7) ? this.#world.store.failover() : this.#world.store.commitAll()),
    foreign: () => {
      const session = this.#session();
      const turnId = `foreign${++this.#files}`;
      void this.#owner(session).then((bot) => {
        this.#world.queues.inject(session, {
          jobId: this.#world.queues.jobId(turnId, 0),
          turnId,
          generation: 0,
          bot,
          input: "from another client",
        });
        return this.#world.queues.wake(session);
      });
    },
    bad: () => {
      const bad = this.#chance.pick<unknown>([
        { bot: "ada", session: "", turnId: "x", input: "y" },
        { bot: "ada", session: { $ne: "" }, turnId: "x", input: "y" },
        { bot: "ada", session: "\ud800", turnId: "x", input: "y" },
        { bot: "ada", session: "tg:1", turnId: "bad", input: 7 },
        null,
      ]);
      const sent = this.#host()
        .turns.send(bad as never)
        .then(() => this.#fail("I11", "a bad turn was accepted"));
      this.#start("a bad turn", sent, "invalid_id", "invalid_input");
    },
    claim: () => {
      const session = this.#session();
      const bot = this.#chance.pick(botNames);
      this.#start(`claim ${session} for ${bot}`, this.#host().sessions.claim(session, bot), "ownership_conflict");
    },
    flush: () => {
      const worker = this.#worker();
      if (worker !== undefined) this.#start("flush", worker.worker.world.settlement.flush());
    },
    clock: () => {
      const worker = this.#worker();
      if (worker !== undefined) worker.skewMs += this.#chance.is(0.5) ? 120_000 : -120_000;
    },
  };

  #repository(): SimulatedWorld["repositories"]["ada"] {
    return this.#world.repositories[this.#chance.pick(botNames)];
  }

  #worker(): SimulatedWorld["workers"][number] | undefined {
    return this.#world.workers.length > 0 ? this.#chance.pick(this.#world.workers) : undefined;
  }
}
