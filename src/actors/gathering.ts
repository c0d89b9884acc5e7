/**
 * What is told at the bottom of a turn: the net change of the Memory Repository since the session last heard (I7), then
 * the notes of hosts, then the input. Nothing here becomes "told" by being built: only the insert of the step does that
 * (rule 8), so a look, an observer and another holder may race.
 */
import { asHeadfastError } from "../domain/errors.ts";
import { insertOnce } from "../domain/insert-once.ts";
import { limits } from "../domain/limits.ts";
import type { Message, UserBlock } from "../domain/messages.ts";
import { netChange, renderNotice } from "../domain/net-change.ts";
import type { Bot, Ledger, Logger, MemoryRepository } from "../domain/ports.ts";
import type { Heard, ManifestEntry, MemoryState, Turn, Wrote } from "../domain/records.ts";
import type { Conversation } from "./conversation.ts";

/** A turn's first message, and what the session has heard once it is recorded. */
export interface Gathered {
  message: Message;
  heard: Heard | null;
  wrote: readonly Wrote[];
  notesTold: number;
  notice: string | null;
  notes: number[];
}

export interface Gathering {
  ledger: Ledger;
  log: Logger;
  /** Manifests by id, shared by the sessions of a bot. */
  manifests: Map<string, readonly ManifestEntry[]>;
  /** Told of every state that a look found. */
  onLook(bot: Bot, seen: MemoryState): void;
}

export async function gather(gathering: Gathering, conversation: Conversation, bot: Bot, turn: Turn): Promise<Gathered> {
  const [memory, notes] = await Promise.all([hear(gathering, conversation, bot), unheardNotes(gathering, conversation)]);
  const blocks: UserBlock[] = [];
  if (memory.notice !== null) blocks.push({ type: "notice", text: memory.notice });
  for (const note of notes) blocks.push({ type: "note", text: note.text });
  blocks.push({ type: "input", text: turn.input, ...(turn.user === undefined ? {} : { user: turn.user }) });
  return {
    message: { role: "user", blocks },
    ...memory,
    notesTold: notes.at(-1)?.number ?? conversation.checkpoint.notesTold,
    notes: notes.map((note) => note.number),
  };
}

async function unheardNotes(gathering: Gathering, conversation: Conversation): Promise<{ number: number; text: string }[]> {
  const notes: { number: number; text: string }[] = [];
  for (let number = conversation.checkpoint.notesTold + 1; notes.length < limits.notesToldMax; number += 1) {
    const note = await gathering.ledger.store.notes.get(conversation.session, number);
    if (note === undefined) break;
    notes.push(note);
  }
  return notes;
}

type Hearing = Pick<Gathered, "heard" | "wrote" | "notice">;

async function hear(gathering: Gathering, conversation: Conversation, bot: Bot): Promise<Hearing> {
  const { heard, wrote } = conversation.checkpoint;
  if (bot.memory === null) return { heard, wrote, notice: null };
  try {
    return await lookAndCompare(gathering, conversation, bot, bot.memory);
  } catch (error) {
    const ours = asHeadfastError(error);
    if (ours.code !== "memory_unreadable") throw error;
    // What was heard stays: after the repair one notice tells the whole net change (rule 8).
    gathering.log.warn(
      { session: conversation.session, bot: bot.name, error: ours.message },
      "the Memory Repository could not be looked at",
    );
    return { heard, wrote, notice: lookFailed };
  }
}

const lookFailed = "The Memory Repository could not be looked at; what changed in it since you last heard is told when it can be.";

async function lookAndCompare(gathering: Gathering, conversation: Conversation, bot: Bot, memory: MemoryRepository): Promise<Hearing> {
  const { heard, wrote } = conversation.checkpoint;
  const look = await memory.look();
  if (look.state === "not_ready") return { heard, wrote, notice: heard === null ? null : lookFailed };
  gathering.onLook(bot, look.seen);
  const now = heardOf(look.seen);
  const told = heard ?? (await firstLook(gathering, conversation, bot, look.seen));
  const notice = await noticeOf(gathering, told, wrote, look.seen);
  if (now.state !== told.state) await keepManifest(gathering, look.seen);
  return { heard: now, wrote: [], notice };
}

/** The first look is a silent baseline, and the first of an owner epoch wins. */
export async function firstLook(gathering: Gathering, conversation: Conversation, bot: Bot, seen: MemoryState): Promise<Heard> {
  const { store, system } = gathering.ledger;
  const now = heardOf(seen);
  await keepManifest(gathering, seen);
  const standing = await store.observations.baseline(
    conversation.session,
    bot.name,
    conversation.checkpoint.ownerEpoch,
    now,
    new Date(system.now()).toISOString(),
  );
  return standing.baseline ?? now;
}

export function heardOf({ state, branch, head }: MemoryState): Heard {
  return { state, branch, head };
}

/** The text of the net change from what was heard to what is seen, or null (I7). */
export async function noticeOf(
  gathering: Pick<Gathering, "ledger" | "manifests">,
  told: Heard,
  wrote: readonly Wrote[],
  seen: MemoryState,
): Promise<string | null> {
  if (told.state === seen.state && told.branch === seen.branch && wrote.length === 0) return null;
  const manifest = told.state === seen.state ? seen.manifest : await manifestOf(gathering, told.state);
  if (manifest === undefined) return "The Memory Repository changed; what it held when you last heard is no longer kept.";
  const change = netChange({ ...told, manifest }, wrote, seen);
  return change === null ? null : renderNotice(change);
}

async function manifestOf(
  { ledger, manifests }: Pick<Gathering, "ledger" | "manifests">,
  id: string,
): Promise<readonly ManifestEntry[] | undefined> {
  const known = manifests.get(id) ?? (await ledger.store.states.get(id));
  if (known !== undefined) remember(manifests, id, known);
  return known;
}

export async function keepManifest({ ledger, manifests }: Pick<Gathering, "ledger" | "manifests">, seen: MemoryState): Promise<void> {
  if (manifests.has(seen.state)) return;
  const { states } = ledger.store;
  await insertOnce(
    ledger.system,
    () => states.put(seen.state, seen.manifest),
    () => states.get(seen.state),
  );
  remember(manifests, seen.state, seen.manifest);
}

/** A few manifests stay warm; they are large. */
function remember(manifests: Map<string, readonly ManifestEntry[]>, id: string, manifest: readonly ManifestEntry[]): void {
  manifests.delete(id);
  manifests.set(id, manifest);
  for (const old of manifests.keys()) {
    if (manifests.size <= 16) return;
    manifests.delete(old);
  }
}
