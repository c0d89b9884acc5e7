/**
 * One turn of one session, from its first assembly to its outcome. The session actor owns the states; this owns the
 * steps. Everything that the turn leaves behind is an entry of the log: a step after the provider accepted its call, and
 * exactly one outcome (I4).
 */
import { uniqueMark } from "../domain/acceptance.ts";
import type { Draft } from "../domain/entry.ts";
import { asHeadfastError, type Cause, causeOf, HeadfastError } from "../domain/errors.ts";
import { limits } from "../domain/limits.ts";
import type { AssistantMessage, Message, ToolCall, Usage } from "../domain/messages.ts";
import { cancelDraft } from "../domain/operations.ts";
import type { Bot, Lease, ModelReply, TurnEvent } from "../domain/ports.ts";
import { guard, type Prefix, toolsFrom } from "../domain/prefix.ts";
import type { CancelReason, Outcome, Turn, Wrote } from "../domain/records.ts";
import { Appender } from "./appender.ts";
import { ensurePrefix, OwnerChanged } from "./assembly.ts";
import type { Conversation } from "./conversation.ts";
import { type Gathered, gather } from "./gathering.ts";
import type { Ran, State } from "./states.ts";
import { Suspicion } from "./suspicion.ts";
import { withTimeout } from "./timeout.ts";
import { runTools, toolNames, withJournalled } from "./tooling.ts";
import { type Appended, type Author, deadDraft, stepDraft } from "./turn-drafts.ts";
import type { SessionWorld } from "./world.ts";

/** The turn was ended, or the session moved, while a call was in flight: its answer is dropped. */
class Overtaken extends Error {}

export class TurnRunner {
  readonly #world: SessionWorld;
  readonly #lease: Lease;
  readonly #conversation: Conversation;
  readonly #bot: Bot;
  readonly #enter: (state: State) => void;
  readonly #overtaken = new AbortController();
  readonly #signal: AbortSignal;
  readonly #startedAt: string;
  readonly #log: Appender;
  #turn: Turn;

  constructor(world: SessionWorld, lease: Lease, conversation: Conversation, bot: Bot, turn: Turn, enter: (state: State) => void) {
    this.#world = world;
    this.#lease = lease;
    this.#conversation = conversation;
    this.#bot = bot;
    this.#turn = turn;
    this.#enter = enter;
    this.#signal = AbortSignal.any([lease.signal, this.#overtaken.signal]);
    this.#log = new Appender(world, lease, conversation, turn.number);
    this.#startedAt = new Date(world.ledger.system.now()).toISOString();
  }

  /** `charge`: this is the first head of the stay, so a takeover counts against it (rule 13). */
  async run(charge: boolean): Promise<Ran> {
    const early = this.#early();
    if (early !== null) return early;
    const suspicion = new Suspicion(this.#world, this.#lease);
    try {
      const held = await suspicion.admit(this.#turn, charge);
      if (held.kind === "delay") return held;
      if (held.kind === "dead") return await this.#close(() => this.#dead(held.cause));
      return await this.#attemptOrFail();
    } finally {
      await suspicion.release(this.#turn);
    }
  }

  async #attemptOrFail(): Promise<Ran> {
    try {
      return await this.#attempt();
    } catch (error) {
      return await this.#failed(error);
    }
  }

  /** A signal came: somebody else may have ended this turn or taken the session. Reads, and aborts only if so. */
  lookForEnd(): void {
    void this.#endSeen().then(
      (seen) => seen && this.#overtaken.abort(new Overtaken()),
      (error: unknown) =>
        this.#world.log.debug(
          { session: this.#turn.session, error: String(error) },
          "a signal could not be followed; the log decides at the next insert",
        ),
    );
  }

  async #endSeen(): Promise<boolean> {
    const { store } = this.#world.ledger;
    const [behind, document] = await Promise.all([
      store.log.read(this.#turn.session, this.#conversation.tail.seq + 1, limits.logBatchMax),
      store.turns.byNumber(this.#turn.session, this.#turn.number),
    ]);
    return document?.cancelMark != null || behind.some((entry) => this.#log.concerns(entry));
  }

  #early(): Ran | null {
    const { dueAt } = this.#turn;
    const rest = dueAt === null ? 0 : dueAt - this.#world.queues.now(); // rule 15
    return rest > 0 ? { kind: "delay", ms: rest, reason: "not due yet" } : null;
  }

  // ── the steps ──────────────────────────────────────────────────────────────────────────────────

  async #attempt(): Promise<Ran> {
    this.#enter({ at: "assembling", turn: this.#turn.number });
    const ended = this.#world.heartbeats.start(() => this.#emit("turn.heartbeat", {}));
    try {
      if (this.#conversation.broken !== null) throw this.#conversation.broken;
      const prefix = await ensurePrefix(this.#world, this.#conversation, this.#bot);
      return await this.#steps(prefix);
    } finally {
      ended();
    }
  }

  async #steps(prefix: Prefix): Promise<Ran> {
    let step = this.#conversation.checkpoint.open?.steps ?? 0;
    if (step > 0 && (await this.#cancelAsked()) !== null) return this.#cancel();
    let appended = step === 0 ? await this.#begin() : await this.#useTools(step, true);
    for (;;) {
      step += 1;
      if (step > limits.stepsMax) throw new HeadfastError("steps_exceeded", `the turn took more than ${limits.stepsMax} model calls`);
      this.#enter({ at: "calling", turn: this.#turn.number, step });
      const rendered = appended.messages.map((message) => this.#bot.model.dialect.renderMessage(message));
      const reply = await this.#call(prefix, rendered, step);
      // With steps recorded a cancel is a mark, and the holder obeys it before its next insert (rule 7).
      if (step > 1 && (await this.#cancelAsked()) !== null) return this.#cancel(appended.wrote);
      const done = reply.message.toolCalls.length === 0;
      const stands = await this.#log.append(() => stepDraft(this.#author(), appended, { rendered, reply, step, prefix }));
      if (!stands) return "again";
      this.#told(appended);
      if (done) return this.#ended("done", { text: reply.message.text });
      appended = await this.#useTools(step, false);
    }
  }

  async #begin(): Promise<Appended> {
    this.#emit("turn.started", { worker: this.#world.ledger.worker });
    const gathered: Gathered = await gather(this.#world, this.#conversation, this.#bot, this.#turn);
    return { ...gathered, messages: [...this.#closers(), gathered.message] };
  }

  /** A turn that ended with open tool calls is closed by an error result for each, in the next step (from the log). */
  #closers(): Message[] {
    const { last } = this.#conversation;
    if (last?.role !== "assistant" || last.toolCalls.length === 0) return [];
    return [
      { role: "tool", results: last.toolCalls.map((call) => ({ id: call.id, text: "not run: the turn ended before", isError: true })) },
    ];
  }

  async #useTools(step: number, resumed: boolean): Promise<Appended> {
    const { checkpoint, last, pending } = this.#conversation;
    const kept = { heard: checkpoint.heard, notesTold: checkpoint.notesTold, notice: null, notes: [] };
    if (pending?.number === this.#turn.number && pending.step === step)
      return { ...kept, messages: pending.messages, wrote: pending.wrote };
    this.#enter({ at: "tooling", turn: this.#turn.number, step });
    const calls = openCalls(last);
    const { message, wrote } = await runTools(
      {
        ledger: this.#world.ledger,
        bot: this.#bot,
        frozen: await this.#frozenTools(),
        turn: this.#turn,
        step,
        wrote: checkpoint.wrote,
        resumed,
        signal: this.#signal,
        onCall: (type, _call, data) => this.#emit(type, data),
      },
      calls,
    );
    this.#conversation.pending = { number: this.#turn.number, step, messages: [message], wrote };
    return { ...kept, messages: [message], wrote };
  }

  async #frozenTools(): Promise<Set<string>> {
    const text =
      this.#world.parts.get(this.#conversation.owner.toolsSha256 ?? "") ??
      (await this.#world.ledger.store.parts.get(this.#conversation.owner.toolsSha256 ?? ""));
    return toolNames(toolsFrom(text ?? "[]"));
  }

  async #call(prefix: Prefix, rendered: readonly string[], step: number): Promise<ModelReply> {
    const { model } = this.#bot;
    const { dialect } = model;
    const messages = this.#conversation.rendered;
    const { body, cuts } = dialect.renderBody(prefix.text, [...messages, ...rendered], {
      model: model.name,
      maxTokens: model.maxTokens,
      settled: messages.length,
    });
    guard({ prefix: prefix.text, messages: messages.join(dialect.separator) }, rendered, dialect.separator, body, cuts); // I2: the bytes that go out
    this.#signal.throwIfAborted();
    const { session, turnId, traceparent } = this.#turn;
    const onDelta = (text: string): void => this.#emit("message.delta", { text });
    const call = (signal: AbortSignal): Promise<ModelReply> =>
      model.call({ body, session, turnId, step, signal, ...(traceparent && { traceparent }), onDelta });
    const late = (): HeadfastError => new HeadfastError("model_timeout", `the model did not answer within ${limits.modelCallMsMax} ms`);
    const reply = await this.#world.gate.pass(model.limitKey, () =>
      withTimeout(this.#world.ledger.system, limits.modelCallMsMax, this.#signal, call, late),
    );
    return checkedReply(reply, model.name);
  }

  // ── ends other than done ───────────────────────────────────────────────────────────────────────

  async #failed(error: unknown): Promise<Ran> {
    if (error instanceof OwnerChanged) throw error;
    if (error instanceof Overtaken || this.#overtaken.signal.aborted) return this.#overtakenEnd();
    if (this.#lease.signal.aborted) throw error; // the activation ends; the turn stays first, no attempt spent (I12)
    const ours = asHeadfastError(error);
    if (ours.kind === "later") return this.#putOff(ours, error);
    if (ours.code === "prefix_drift" || ours.code === "document_invalid") this.#alarm(ours);
    const attempt = await this.#spendAttempt(error, ours);
    if (attempt.dead) return this.#close(() => this.#dead(causeOf(error)));
    this.#emit("turn.retrying", { attempt: attempt.number, after_ms: attempt.ms, code: ours.code });
    return { kind: "delay", ms: attempt.ms, reason: ours.code };
  }

  /** A session whose bytes are not what was recorded: counted and said loudly, each time. */
  #alarm(ours: HeadfastError): void {
    this.#world.count(ours.code);
    this.#world.log.error(
      { session: this.#turn.session, turn: this.#turn.turnId, code: ours.code, error: ours.message },
      "the turn is dead: the session is not as it was recorded",
    );
  }

  async #overtakenEnd(): Promise<Ran> {
    await this.#conversation.catchUp(this.#world.ledger.store);
    if (this.#conversation.checkpoint.open?.number === this.#turn.number && (await this.#cancelAsked()) !== null) return this.#cancel();
    return "again";
  }

  /** "Later" spends no attempt (I12); when it is due is kept, for whoever holds the session then. */
  async #putOff(ours: HeadfastError, error: unknown): Promise<Ran> {
    if (ours.code !== "model_later") throw error;
    const ms = ours.retryAfterMs ?? limits.laterMsDefault;
    await this.#world.ledger.store.turns.setDue(this.#turn.session, this.#turn.number, this.#world.queues.now() + ms);
    this.#world.count("model_later");
    this.#emit("turn.retrying", { after_ms: ms, code: ours.code });
    return { kind: "delay", ms, reason: ours.code };
  }

  async #spendAttempt(error: unknown, ours: HeadfastError): Promise<{ number: number; dead: boolean; ms: number }> {
    const { store, system, worker } = this.#world.ledger;
    const document = (await store.turns.byNumber(this.#turn.session, this.#turn.number)) ?? this.#turn;
    const number = document.attemptsSpent + 1;
    const dead = ours.kind === "terminal" || number >= this.#bot.attemptsMax;
    const backoff = Math.min(limits.backoffMsMin * 2 ** (number - 1), limits.backoffMsMax);
    const ms = Math.round(backoff * (1 + system.random() / 2));
    const endedAt = new Date(system.now()).toISOString();
    await store.turns.addAttempt(
      this.#turn.session,
      this.#turn.number,
      { number, worker, startedAt: this.#startedAt, endedAt, error: causeOf(error) },
      dead ? null : this.#world.queues.now() + ms,
    );
    return { number, dead, ms };
  }

  async #dead(cause: Cause): Promise<Draft> {
    return deadDraft(this.#author(), await this.#looseWrites(), cause);
  }

  #author(): Author {
    return { conversation: this.#conversation, bot: this.#bot, turn: this.#turn, worker: this.#world.ledger.worker };
  }

  async #cancelAsked(): Promise<CancelReason | null> {
    const document = await this.#world.ledger.store.turns.byNumber(this.#turn.session, this.#turn.number);
    if (document !== undefined) this.#turn = document;
    return document?.cancelMark ?? null;
  }

  async #cancel(wrote?: readonly Wrote[]): Promise<Ran> {
    const reason = this.#turn.cancelMark ?? "user";
    return this.#close(async () => {
      const checkpoint = { ...this.#conversation.checkpoint, wrote: wrote ?? (await this.#looseWrites()) };
      return cancelDraft({ ...this.#conversation.tail, checkpoint }, this.#turn, reason, this.#world.ledger.worker);
    });
  }

  /** What tools of the open step wrote, or may have: the session's own, whatever becomes of the turn (I7). */
  async #looseWrites(): Promise<readonly Wrote[]> {
    const { checkpoint, last } = this.#conversation;
    if (checkpoint.open?.number !== this.#turn.number) return checkpoint.wrote;
    return withJournalled(checkpoint.wrote, this.#world.ledger, this.#turn, checkpoint.open.steps, openCalls(last));
  }

  async #close(draft: () => Promise<Draft>): Promise<Ran> {
    this.#enter({ at: "closing", turn: this.#turn.number });
    let outcome: Outcome | null = null;
    const stands = await this.#log.append(async () => {
      const built = await draft();
      outcome = built.outcome ?? null;
      return built;
    });
    if (!stands || outcome === null) return "again";
    return this.#ended(outcome, {});
  }

  // ── telling ────────────────────────────────────────────────────────────────────────────────────

  async #ended(outcome: Outcome, data: Record<string, unknown>): Promise<Ran> {
    const { session, number } = this.#turn;
    const { seq } = this.#conversation.tail;
    const { ledger } = this.#world;
    const letter = outcome === "dead" ? uniqueMark(ledger.shardOf(session), ledger.system) : null;
    const hint = this.#conversation.hintFor({ session, lastNumber: number, lastSeq: seq, activeAt: ledger.system.now() });
    this.#world.settlement.add({ session, number, outcome, outcomeSeq: seq, letter }, hint);
    if (letter !== null) {
      await this.#world.settlement.flush(); // listed before its host hears of it
      await this.#world.letterOf(this.#turn, seq);
    }
    this.#emit(`turn.${outcome}`, data);
    return "ended";
  }

  #told(appended: Appended): void {
    if (appended.notice !== null) this.#emit("notice.told", {});
    if (appended.notice !== null || appended.notes.length > 0) this.#conversation.inboxStale = true;
  }

  #emit(type: TurnEvent["type"], data: Record<string, unknown>): void {
    const { session, turnId, generation } = this.#turn;
    this.#world.queues.events.publish({ session, seq: this.#conversation.tail.seq, type, turnId, generation, data });
  }
}

function openCalls(last: Message | null): readonly ToolCall[] {
  return last?.role === "assistant" ? last.toolCalls : [];
}

/** What a model answers is untrusted: its shape is checked, and it is bounded, before it is kept. */
function checkedReply(reply: ModelReply, model: string): ModelReply {
  const { text, toolCalls } = shaped(reply, model);
  if (toolCalls.length > limits.toolCallsPerStepMax)
    throw new HeadfastError(
      "reply_too_large",
      `the model asked for ${toolCalls.length} tool calls at once, the limit is ${limits.toolCallsPerStepMax}`,
    );
  const bytes = Buffer.byteLength(text) + toolCalls.reduce((sum, call) => sum + Buffer.byteLength(call.arguments), 0);
  if (bytes > limits.replyBytesMax)
    throw new HeadfastError("reply_too_large", `the model answered ${bytes} bytes, the limit is ${limits.replyBytesMax}`);
  const message: AssistantMessage = {
    role: "assistant",
    text: text.toWellFormed(),
    toolCalls: toolCalls.map((call) => ({
      id: call.id.toWellFormed(),
      name: call.name.toWellFormed(),
      arguments: call.arguments.toWellFormed(),
    })),
  };
  return { message, usage: checkedUsage(reply.usage) };
}

function shaped(reply: ModelReply, model: string): AssistantMessage {
  const message = (reply as Partial<ModelReply> | null | undefined)?.message as Partial<AssistantMessage> | undefined;
  const calls = message?.toolCalls;
  const callsFit =
    Array.isArray(calls) && calls.every((call) => [call?.id, call?.name, call?.arguments].every((part) => typeof part === "string"));
  if (typeof message?.text === "string" && callsFit) return message as AssistantMessage;
  throw new HeadfastError(
    "model_failed",
    `the model ${JSON.stringify(model)} answered what is no reply; expected { message: { role, text, toolCalls: [{ id, name, arguments }] }, usage }`,
  );
}

/** Figures that cannot be are "not reported": they must not cost the answer. */
function checkedUsage(usage: Usage | undefined): Usage {
  const figure = (value: unknown): number | null => (typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : null);
  return {
    fresh: figure(usage?.fresh),
    cacheRead: figure(usage?.cacheRead),
    cacheWrite: figure(usage?.cacheWrite),
    output: figure(usage?.output),
  };
}
