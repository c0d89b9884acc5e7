/**
 * The session actor: one activation of one session.
 *
 * Owns: the order in which this session's turns run, and every entry their holder appends. Calls over its boundary:
 * the store (log, turns, ownership), the queues (turn queue, events), the bot (model, tools, memory).
 *
 * States and the only ways between them:
 *
 *   idle ──► assembling ──► calling ──► tooling ──► calling …
 *              │               │           │
 *              ▼               ▼           ▼
 *            closing ◄─────────┴───────────┘        (an outcome other than done: dead, cancelled)
 *
 *   any ──► releasing: the activation ends; nothing is written from then on.
 *   calling ──► idle: the step was recorded with outcome done, or its place was lost and the activation starts over.
 *
 * Invariants upheld here: I3 (the head is a function of the log and the numbers), I4 (each outcome is one insert under
 * the log's fence), I5 (a re-own in the log is obeyed before anything else), I11, I12 (which error spends an attempt).
 */
import assert from "node:assert/strict";
import { freshOwnership } from "../domain/acceptance.ts";
import { hasOutcome } from "../domain/checkpoint.ts";
import { asHeadfastError, HeadfastError, isHeadfastError } from "../domain/errors.ts";
import type { SessionId } from "../domain/ids.ts";
import { limits } from "../domain/limits.ts";
import { rollForward } from "../domain/operations.ts";
import type { ActivationEnd, Lease } from "../domain/ports.ts";
import type { Turn } from "../domain/records.ts";
import { OwnerChanged } from "./assembly.ts";
import { Conversation } from "./conversation.ts";
import { MailboxView } from "./mailbox-view.ts";
import { type Ran, type State, ways } from "./states.ts";
import { TurnRunner } from "./turn-runner.ts";
import type { SessionWorld } from "./world.ts";

export class SessionActor {
  readonly #world: SessionWorld;
  readonly #lease: Lease;
  readonly #session: SessionId;
  readonly #mailbox: MailboxView;
  #runner: TurnRunner | null = null;
  #state: State = { at: "idle" };
  #conversation: Conversation | null = null;
  #stallCharged = false;
  /** Turns that ended in this stay. */
  #ended = 0;

  constructor(world: SessionWorld, lease: Lease) {
    this.#world = world;
    this.#lease = lease;
    this.#session = lease.session;
    this.#mailbox = new MailboxView(lease.session, world.ledger, world.queues, world.log);
  }

  get state(): State {
    return this.#state;
  }

  /** Drains the session. Never rejects: whatever happens becomes the way the activation ends. */
  async run(): Promise<ActivationEnd> {
    const forget = this.#world.stays.enter(this.#session, () => this.#runner?.lookForEnd());
    try {
      return await this.#drain();
    } catch (error) {
      return this.#endOf(error);
    } finally {
      forget();
      this.#enter({ at: "releasing" });
      // A copy that a cancelled or fenced stay left is still what the log says: `apply` only takes what stands.
      if (this.#conversation !== null) this.#world.warm.put(this.#conversation);
    }
  }

  async #drain(): Promise<ActivationEnd> {
    const began = this.#world.ledger.system.monotonic();
    await this.#mailbox.refresh();
    for (let rounds = 0; ; rounds += 1) {
      this.#lease.signal.throwIfAborted();
      const conversation = await this.#upToDate(rounds);
      if (conversation === null) return { kind: "idle" };
      const turn = await this.#head(conversation);
      if (turn === null) return this.#atRest();
      if (this.#ended >= limits.turnsPerActivationMax || this.#world.ledger.system.monotonic() - began > limits.activationMsMax) {
        return this.#flushed({ kind: "yield" });
      }
      const ran = await this.#run(conversation, turn);
      if (typeof ran === "object") return this.#flushed(ran);
      if (ran === "ended") this.#ended += 1;
    }
  }

  /** Steps 1 and 2 of an activation: the log's end, and who owns the session by it (I5). */
  async #upToDate(rounds: number): Promise<Conversation | null> {
    const { ledger, warm } = this.#world;
    this.#conversation ??= warm.take(this.#session) ?? null;
    if (this.#conversation === null) {
      this.#conversation = await this.#load();
      if (this.#conversation === null) return null;
    } else if (rounds === 0) {
      await this.#conversation.catchUp(ledger.store); // usually one point read that finds nothing
    }
    if (this.#conversation.broken === null) await this.#obeyReown(this.#conversation);
    return this.#conversation;
  }

  async #load(): Promise<Conversation | null> {
    const { store } = this.#world.ledger;
    try {
      const owner = await store.ownership.get(this.#session);
      return owner === undefined ? null : await Conversation.load(store, owner);
    } catch (error) {
      if (!isHeadfastError(error, "document_invalid") || error.data.collection !== "session_ownership") throw error;
      return this.#loadBroken(error);
    }
  }

  /** An ownership document that a hand made unreadable: no call can be made on it, but its turns still end, as dead (I11). */
  async #loadBroken(reason: HeadfastError): Promise<Conversation> {
    const { store, system } = this.#world.ledger;
    const first = await store.turns.byNumber(this.#session, 1);
    const standIn = freshOwnership(this.#session, first?.bot ?? "", system);
    const conversation = await Conversation.load(store, standIn);
    await conversation.catchUp(store);
    conversation.broken ??= reason;
    return conversation;
  }

  async #obeyReown(conversation: Conversation): Promise<void> {
    const { ledger } = this.#world;
    const { checkpoint, owner } = conversation;
    if (owner.ownerEpoch === checkpoint.ownerEpoch && checkpoint.owed === null) return;
    await rollForward(ledger, owner, conversation.tail);
    await conversation.catchUp(ledger.store);
    const standing = await ledger.store.ownership.get(this.#session);
    if (standing === undefined || standing.ownerEpoch !== conversation.checkpoint.ownerEpoch)
      throw new HeadfastError(
        "document_invalid",
        `session_ownership of session ${JSON.stringify(this.#session)} does not follow its log (owner_epoch)`,
        { data: { session: this.#session, field: "owner_epoch" } },
      );
    conversation.owner = standing;
    conversation.prefix = null;
  }

  /** The turn that runs next, by the log and the numbers alone (rules 1, 2, 18). */
  async #head(conversation: Conversation): Promise<Turn | null> {
    const { turns } = this.#world.ledger.store;
    const { checkpoint } = conversation;
    this.#mailbox.drop(checkpoint);
    if (checkpoint.open !== null) return this.#required(checkpoint.open.number); // rule 2
    if (checkpoint.parked !== null) {
      const replay = await turns.byId(this.#session, checkpoint.parked.turnId, checkpoint.parked.generation + 1);
      return replay ?? null; // rule 18
    }
    const [next] = checkpoint.next;
    if (next !== undefined) return this.#required(next);
    const number = checkpoint.through + 1;
    if (this.#mailbox.pendingRemovals > 0 && this.#mailbox.empty) await this.#mailbox.refresh();
    const queued = this.#lease.fresh ? this.#mailbox.find(number) : undefined;
    // Behind a turn that ran, an empty queue ends the stay: who adds to it wakes the session, and the reconciler mends.
    if (this.#lease.fresh && queued === undefined && this.#ended > 0 && this.#mailbox.empty) return null;
    return queued ?? (await turns.byNumber(this.#session, number)) ?? null;
  }

  async #required(number: number): Promise<Turn> {
    const turn = await this.#world.ledger.store.turns.byNumber(this.#session, number);
    if (turn !== undefined) return turn;
    throw new HeadfastError(
      "document_invalid",
      `turns has no document ${number} of session ${JSON.stringify(this.#session)}, which its log names`,
      { data: { session: this.#session, number } },
    );
  }

  async #run(conversation: Conversation, turn: Turn): Promise<Ran> {
    assert(!hasOutcome(conversation.checkpoint, turn.number)); // I4
    const bot = this.#world.bots.get(conversation.checkpoint.bot);
    if (bot === undefined) {
      this.#world.count("unserved");
      this.#sayUnserved(conversation.checkpoint.bot);
      return { kind: "delay", ms: limits.unservedMs, reason: `bot ${conversation.checkpoint.bot} is not served here` };
    }
    const runner = new TurnRunner(this.#world, this.#lease, conversation, bot, turn, (state) => this.#enter(state));
    this.#runner = runner;
    const charge = !this.#stallCharged;
    this.#stallCharged = true;
    try {
      return await runner.run(charge);
    } catch (error) {
      if (error instanceof OwnerChanged) {
        await conversation.catchUp(this.#world.ledger.store);
        return "again";
      }
      throw error;
    } finally {
      this.#runner = null;
      this.#enter({ at: "idle" });
    }
  }

  /** Once per bot: a mistyped name must not wait in silence. */
  #sayUnserved(bot: string): void {
    if (this.#reported(`unserved:${bot}`)) return;
    this.#world.log.warn({ bot, session: this.#session }, "a session of a bot that this worker does not serve waits for one that does");
  }

  /** Whether this process has said so before; from now on it has. */
  #reported(key: string): boolean {
    const before = this.#world.reported.has(key);
    this.#world.reported.add(key);
    return before;
  }

  async #atRest(): Promise<ActivationEnd> {
    return this.#flushed({ kind: "idle" });
  }

  async #flushed(end: ActivationEnd): Promise<ActivationEnd> {
    if (this.#conversation !== null) this.#mailbox.drop(this.#conversation.checkpoint);
    await this.#mailbox.flush();
    if (this.#conversation !== null && (this.#conversation.inboxStale || !this.#lease.fresh)) await this.#tidyInbox(this.#conversation);
    return end;
  }

  /** The inbox queue and the observation are projections: what the log says was told goes from both (I10). */
  async #tidyInbox(conversation: Conversation): Promise<void> {
    const { queues, ledger } = this.#world;
    const { heard, notesTold, ownerEpoch } = conversation.checkpoint;
    const observation = await ledger.store.observations.get(this.#session);
    const from = heard ?? observation?.baseline ?? null;
    const holds = observation?.pending != null && observation.pending.from === from?.state;
    if (observation?.pending != null && !holds)
      await ledger.store.observations.project(this.#session, ownerEpoch, null, new Date(ledger.system.now()).toISOString());
    const items = await queues.inbox.list(this.#session);
    const stale = items.filter(({ id }) => (id === "notice" ? !holds : Number(id.replace("note-", "")) <= notesTold));
    if (stale.length > 0)
      await queues.inbox.remove(
        this.#session,
        stale.map(({ id }) => id),
      );
    conversation.inboxStale = false;
  }

  #endOf(error: unknown): ActivationEnd {
    const { signal } = this.#lease;
    if (signal.aborted) return asHeadfastError(signal.reason).code === "draining" ? { kind: "handover" } : { kind: "idle" };
    const ours = asHeadfastError(error);
    const ahead = ours.code === "version_ahead"; // left as it is for a newer worker, and said once per session (rule 19)
    const outage = limits.outageMsMin + this.#world.ledger.system.random() * (limits.outageMsMax - limits.outageMsMin);
    const ms = ahead ? limits.aheadMs : (ours.retryAfterMs ?? (ours.kind === "later" ? outage : limits.outageMsMax));
    const said = ahead && this.#reported(`ahead:${this.#session}`);
    const level = said ? "debug" : ours.kind === "later" ? "warn" : "error";
    this.#world.log[level](
      {
        session: this.#session,
        code: ours.code,
        error: ours.message,
        ...(ours.code === "unexpected" ? { stack: (error as Error).stack } : {}),
      },
      "the activation is put off",
    );
    this.#world.count(ours.code);
    return { kind: "delay", ms, reason: ours.code };
  }

  #enter(state: State): void {
    if (state.at === this.#state.at && state.at === "idle") return;
    assert(ways[this.#state.at].includes(state.at), `${this.#state.at} → ${state.at}`);
    this.#state = state;
  }
}
