/**
 * First assembly: freezes role prompts, tools and persona on the ownership document, once, whoever races (I6, rule 6);
 * later assemblies find those bytes again by their hashes (I1). Four answers are told apart: not taken, empty, not
 * ready, not owned.
 */
import { asHeadfastError, HeadfastError } from "../domain/errors.ts";
import { insertOnce } from "../domain/insert-once.ts";
import type { Bot, FrozenPrefix, MemoryRepository, Persona } from "../domain/ports.ts";
import { type Prefix, prefixOf, sha256, toolsFrom, toolsText } from "../domain/prefix.ts";
import type { Ownership } from "../domain/records.ts";
import type { Conversation } from "./conversation.ts";
import { firstLook, type Gathering } from "./gathering.ts";

/** Thrown where the owner changed under the assembly: the activation starts over. */
export class OwnerChanged extends Error {}

export interface Assembly extends Gathering {
  /** Texts by hash: shared by sessions, so kept by the worker. */
  parts: Map<string, string>;
  /** Tool sets already reported as different, `session:hash`. */
  reported: Set<string>;
}

/** The session's prefix, taken if it is not yet. @throws {OwnerChanged}, `memory_unreadable`, `document_invalid`, `dialect_differs` */
export async function ensurePrefix(assembly: Assembly, conversation: Conversation, bot: Bot): Promise<Prefix> {
  if (conversation.owner.baseline === 1 && conversation.prefix !== null) return conversation.prefix;
  if (conversation.owner.baseline !== 1) await takeBaseline(assembly, conversation, bot);
  conversation.prefix ??= await loadPrefix(assembly, conversation.owner, bot);
  return conversation.prefix;
}

async function takeBaseline(assembly: Assembly, conversation: Conversation, bot: Bot): Promise<void> {
  const { store, system } = assembly.ledger;
  const { owner, checkpoint } = conversation;
  await hearBaseline(assembly, conversation, bot); // before the persona is read: an edit in between is told, not swallowed
  const persona = await readPersona(bot.memory);
  if (persona.state === "not_ready" && owner.baseline === 0) return; // still open, nothing new (I6)
  for (const warning of (persona.state === "ready" && persona.warnings) || [])
    assembly.log.warn({ session: owner.session, bot: bot.name }, `PERSONA.md: ${warning}`);
  const frozen = await freeze(assembly, owner, bot, persona, new Date(system.now()).toISOString());
  await store.ownership.freeze(owner.session, { bot: checkpoint.bot, ownerEpoch: checkpoint.ownerEpoch, from: owner.baseline }, frozen);
  const standing = await store.ownership.get(owner.session); // what won is used by everybody
  if (
    standing === undefined ||
    standing.ownerEpoch !== checkpoint.ownerEpoch ||
    standing.bot !== checkpoint.bot ||
    standing.baseline === null
  )
    throw new OwnerChanged();
  if (owner.baseline === 0 && standing.baseline === 1)
    assembly.log.info({ session: owner.session, bot: bot.name }, "the persona arrived: first baseline of a session that began without");
  conversation.owner = standing;
  conversation.prefix = null;
}

async function hearBaseline(assembly: Assembly, conversation: Conversation, bot: Bot): Promise<void> {
  if (bot.memory === null || conversation.checkpoint.heard !== null) return;
  try {
    const look = await bot.memory.look();
    if (look.state === "ready") await firstLook(assembly, conversation, bot, look.seen);
  } catch (error) {
    if (asHeadfastError(error).code !== "memory_unreadable") throw error;
    assembly.log.warn(
      { session: conversation.session, bot: bot.name, error: String(error) },
      "no first look at the Memory Repository; the turn's own look says so",
    );
  }
}

/** A bot without a Memory Repository has an empty persona; one whose repository is not ready has none yet. */
async function readPersona(memory: MemoryRepository | null): Promise<Persona> {
  return memory === null ? { state: "ready", body: "" } : memory.persona();
}

async function freeze(assembly: Assembly, owner: Ownership, bot: Bot, persona: Persona, at: string): Promise<FrozenPrefix> {
  // At baseline 0 tools and role prompts are frozen already; only the persona was open.
  const tools = owner.toolsSha256 === undefined ? toolsText(bot.tools) : await part(assembly, owner, "tools_sha256", owner.toolsSha256);
  const roles =
    owner.rolePromptsSha256 === undefined
      ? JSON.stringify(bot.rolePrompts)
      : await part(assembly, owner, "role_prompts_sha256", owner.rolePromptsSha256);
  const body = persona.state === "ready" ? persona.body.toWellFormed() : null;
  const prefix = prefixOf({ tools: toolsFrom(tools), rolePrompts: JSON.parse(roles) as string[], persona: body }, bot.model.dialect);
  for (const text of [tools, roles, prefix.text]) await keep(assembly, text);
  return {
    baseline: body === null ? 0 : 1,
    toolsSha256: sha256(tools),
    rolePromptsSha256: sha256(roles),
    dialect: bot.model.dialect.id,
    prefixSha256: prefix.sha256,
    ...(body === null ? {} : { personaSnapshot: body, personaSnapshotAt: at, personaSha256: sha256(body) }),
  };
}

async function loadPrefix(assembly: Assembly, owner: Ownership, bot: Bot): Promise<Prefix> {
  checkSnapshot(owner);
  if (owner.dialect !== bot.model.dialect.id) {
    throw new HeadfastError(
      "dialect_differs",
      `session ${JSON.stringify(owner.session)} was begun in dialect ${owner.dialect}, its bot now speaks ${bot.model.dialect.id}; begin a new session or go back to a model of the first`,
      { data: { session: owner.session } },
    );
  }
  reportTools(assembly, owner, bot);
  const sha = owner.prefixSha256 ?? "";
  return { text: await part(assembly, owner, "prefix_sha256", sha), sha256: sha };
}

/** A snapshot changed by hand is an error that says so, never other bytes and never a silent rebuild. */
function checkSnapshot(owner: Ownership): void {
  if (owner.baseline !== 1) return;
  const snapshot: unknown = owner.personaSnapshot; // text, unless a hand in the store made it something else
  if (typeof snapshot !== "string" || sha256(snapshot) !== owner.personaSha256) {
    const how =
      snapshot === undefined
        ? "is missing"
        : typeof snapshot !== "string"
          ? "is not text"
          : "is not the one that was taken (persona_sha256)";
    throw new HeadfastError(
      "document_invalid",
      `session_ownership of session ${JSON.stringify(owner.session)}: persona_snapshot ${how}; restore it, or re-own the session to take a new one`,
      { data: { session: owner.session, field: "persona_snapshot" } },
    );
  }
}

/** Said once per session and tool set: the session keeps the tools it was frozen with. */
function reportTools(assembly: Assembly, owner: Ownership, bot: Bot): void {
  const now = sha256(toolsText(bot.tools));
  const key = `${owner.session}:${now}`;
  if (now === owner.toolsSha256 || assembly.reported.has(key)) return;
  assembly.reported.add(key);
  assembly.log.warn(
    { code: "frozen_tools_differ", session: owner.session, bot: bot.name },
    "frozen_tools_differ: the session keeps the tools it was begun with",
  );
}

async function keep(assembly: Assembly, text: string): Promise<void> {
  const sha = sha256(text);
  if (assembly.parts.has(sha)) return;
  const { store, system } = assembly.ledger;
  const standing = await insertOnce(
    system,
    () => store.parts.put(sha, text),
    () => store.parts.get(sha),
  );
  if (standing !== undefined && standing !== text) {
    throw new HeadfastError("document_invalid", `prefix_parts ${sha} is not the text of its hash: restore it`, { data: { sha256: sha } });
  }
  assembly.parts.set(sha, text);
}

async function part(assembly: Assembly, owner: Ownership, field: string, sha: string): Promise<string> {
  const text = assembly.parts.get(sha) ?? (await assembly.ledger.store.parts.get(sha));
  if (text === undefined || sha256(text) !== sha) {
    throw new HeadfastError(
      "document_invalid",
      `prefix_parts ${sha} of session ${JSON.stringify(owner.session)} (${field}) ${text === undefined ? "is missing" : "was changed"}; restore it, or re-own the session`,
      { data: { session: owner.session, field } },
    );
  }
  assembly.parts.set(sha, text);
  return text;
}
