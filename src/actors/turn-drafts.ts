/** What the holder's entries say: a step with what it appended, and a death with its cause. Pure. */
import { parkedAt, unparked, withOutcome } from "../domain/checkpoint.ts";
import type { Draft } from "../domain/entry.ts";
import type { Cause } from "../domain/errors.ts";
import type { Message } from "../domain/messages.ts";
import type { Bot, ModelReply } from "../domain/ports.ts";
import type { Prefix } from "../domain/prefix.ts";
import type { Checkpoint, Heard, Turn, Wrote } from "../domain/records.ts";
import type { Conversation } from "./conversation.ts";

/** What one step appends before the model is called, and what the session has heard and written once it stands. */
export interface Appended {
  messages: Message[];
  heard: Heard | null;
  wrote: readonly Wrote[];
  notesTold: number;
  notice: string | null;
  notes: number[];
}

/** Who writes about which turn. */
export interface Author {
  conversation: Conversation;
  bot: Bot;
  turn: Turn;
  worker: string;
}

/** An accepted call: its number, what it sent as rendered, and what came back. */
export interface Answered {
  step: number;
  prefix: Prefix;
  rendered: readonly string[];
  reply: ModelReply;
}

/** A step; a reply without tool calls ends the turn as done. */
export function stepDraft(
  { conversation, bot, turn, worker }: Author,
  appended: Appended,
  { step, prefix, rendered, reply }: Answered,
): Draft {
  const { turnId, generation, number } = turn;
  const done = reply.message.toolCalls.length === 0;
  const all = [...rendered, bot.model.dialect.renderMessage(reply.message)];
  const base: Checkpoint = {
    ...conversation.checkpoint,
    baseline: conversation.owner.baseline ?? 0,
    heard: appended.heard,
    wrote: appended.wrote,
    notesTold: appended.notesTold,
    sequence: conversation.sequence(all),
  };
  return {
    kind: "step",
    worker,
    turn: { number, turnId, generation },
    step,
    messages: [...appended.messages, reply.message],
    rendered: all,
    dialect: bot.model.dialect.id,
    model: bot.model.name,
    usage: reply.usage,
    notice: appended.notice,
    outcome: done ? "done" : null,
    prefixSha256: prefix.sha256,
    checkpoint: done ? unparked(withOutcome(base, number), turnId) : { ...base, open: { number, turnId, generation, steps: step } },
  };
}

/** `wrote`: everything that the turn's tools wrote, or may have. */
export function deadDraft({ conversation, bot, turn, worker }: Author, wrote: readonly Wrote[], cause: Cause): Draft {
  const { turnId, generation, number } = turn;
  const parks = bot.onDead === "park";
  const ended = withOutcome({ ...conversation.checkpoint, wrote }, number);
  const checkpoint = parks ? parkedAt(ended, turn) : unparked(ended, turnId);
  return { kind: "dead", worker, turn: { number, turnId, generation }, outcome: "dead", cause, parks, checkpoint };
}
