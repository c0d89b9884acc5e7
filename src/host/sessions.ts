/** What a host or an operator does with sessions. */
import { claimSession } from "../domain/acceptance.ts";
import { hasOutcome } from "../domain/checkpoint.ts";
import { checkChain, tailOf } from "../domain/entry.ts";
import { HeadfastError } from "../domain/errors.ts";
import { type BotName, checkBotName, checkId, type SessionId } from "../domain/ids.ts";
import { limits } from "../domain/limits.ts";
import { emptyTail, findLast, readTail } from "../domain/log.ts";
import { type Actor, reownSession, requireOwner } from "../domain/operations.ts";
import type { Ledger, Queues } from "../domain/ports.ts";
import { sha256, toolsFrom } from "../domain/prefix.ts";
import type { Checkpoint, Entry, Ownership, Turn } from "../domain/records.ts";
import { bestEffort } from "./best-effort.ts";
import { actorOf, actorOptions, checkOptions, claimOptions, listOptions, transcriptOptions } from "./options.ts";

export interface SessionView {
  owner: Ownership;
  checkpoint: Checkpoint;
  /** Entries in the log. */
  seq: number;
  /** Turns accepted, and those without an outcome. */
  turns: number;
  open: number;
  state: "idle" | "queued" | "running" | "parked";
}

export interface PrefixView {
  text: string;
  sha256: string;
  dialect: string;
  persona: string | null;
  personaAt: string | null;
  rolePrompts: string[];
  tools: string[];
}

export class HostSessions {
  readonly #ledger: Ledger;
  readonly #queues: Queues;

  constructor(ledger: Ledger, queues: Queues) {
    this.#ledger = ledger;
    this.#queues = queues;
  }

  /** Claims a fresh session for a bot; the same claim again is harmless. @throws `ownership_conflict` naming the owner */
  async claim(session: SessionId, bot: BotName, more: { role?: string; provenance?: string; parent?: SessionId } = {}): Promise<Ownership> {
    checkId("session", session);
    checkOptions("sessions.claim", claimOptions, more);
    if (more.parent !== undefined) await requireOwner(this.#ledger, checkId("parent", more.parent));
    return claimSession(this.#ledger, session, checkBotName(bot), more);
  }

  /** @throws `session_not_found` */
  async get(session: SessionId): Promise<SessionView> {
    const owner = await requireOwner(this.#ledger, checkId("session", session));
    const { checkpoint, seq } = await readTail(this.#ledger.store, owner);
    const last = await findLast((n) => this.#ledger.store.turns.byNumber(session, n), Math.max(owner.lastNumber, checkpoint.through));
    const turns = last?.n ?? 0;
    const open = turns - checkpoint.through - checkpoint.above.reduce((sum, [from, to]) => sum + to - from + 1, 0);
    const state = checkpoint.parked !== null ? "parked" : checkpoint.open !== null ? "running" : open > 0 ? "queued" : "idle";
    return { owner, checkpoint, seq, turns, open, state };
  }

  /** Newest activity first; at most `limit`, 1 to 1,000, 100 where absent. @throws `invalid_input` */
  async list(filter: { bot?: BotName; limit?: number } = {}): Promise<Ownership[]> {
    checkOptions("sessions.list", listOptions, filter);
    return this.#ledger.store.ownership.list({
      ...(filter.bot === undefined ? {} : { bot: checkBotName(filter.bot) }),
      limit: filter.limit ?? 100,
    });
  }

  /**
   * Gives the session to another bot (I5): clears the persona snapshot; what is queued stays queued.
   * @param actor who, and why: both are kept in the log. @throws `session_not_found`, `invalid_id`, `invalid_input`
   */
  async reown(session: SessionId, to: BotName, actor: Actor): Promise<Ownership> {
    checkId("session", session);
    checkBotName(to);
    checkOptions("sessions.reown", actorOptions, actor);
    const owner = await requireOwner(this.#ledger, session);
    const standing = await reownSession(this.#ledger, owner, to, actorOf(actor));
    this.#queues.events.signal(session);
    await bestEffort(() => this.#queues.wake(session));
    return standing;
  }

  /** Entries after the cursor (a seq), in order; at most `limit`, 1 to 1,000, 200 where absent. @throws `session_not_found`, `invalid_input` */
  async transcript(
    session: SessionId,
    options: { after?: number; limit?: number } = {},
  ): Promise<{ entries: Entry[]; cursor: number; more: boolean }> {
    checkOptions("sessions.transcript", transcriptOptions, options);
    const owner = await requireOwner(this.#ledger, checkId("session", session));
    const { after = 0, limit = limits.logBatchMax } = options;
    const entries = await this.#ledger.store.log.read(owner.session, after + 1, limit);
    return { entries, cursor: entries.at(-1)?.seq ?? after, more: entries.length === limit };
  }

  /** Reads the whole log and checks every link of its hash chain. Resolves with the number of entries. @throws `document_invalid` */
  async verify(session: SessionId): Promise<number> {
    const owner = await requireOwner(this.#ledger, checkId("session", session));
    let previous: Pick<Entry, "seq" | "hash"> = emptyTail(owner);
    for (;;) {
      const batch = await this.#ledger.store.log.read(session, previous.seq + 1, limits.logBatchMax);
      for (const entry of batch) {
        checkChain(entry, previous);
        previous = tailOf(entry);
      }
      if (batch.length < limits.logBatchMax) return previous.seq;
    }
  }

  /** The exact frozen bytes. Null where nothing was assembled yet. @throws `document_invalid` */
  async prefix(session: SessionId): Promise<PrefixView | null> {
    const owner = await requireOwner(this.#ledger, checkId("session", session));
    if (owner.baseline === null || owner.prefixSha256 === undefined) return null;
    const text = await this.#part(owner, owner.prefixSha256);
    const tools = toolsFrom(await this.#part(owner, owner.toolsSha256 ?? ""));
    const rolePrompts = JSON.parse(await this.#part(owner, owner.rolePromptsSha256 ?? "")) as string[];
    return {
      text,
      sha256: sha256(text),
      dialect: owner.dialect ?? "",
      persona: owner.personaSnapshot ?? null,
      personaAt: owner.personaSnapshotAt ?? null,
      rolePrompts,
      tools: tools.map((tool) => tool.name),
    };
  }

  /** Turns without an outcome, in order of their numbers; at most `limits.listMax`. @throws `session_not_found` */
  async openTurns(session: SessionId): Promise<Turn[]> {
    const { checkpoint, turns } = await this.get(session);
    const open: Turn[] = [];
    for (let number = checkpoint.through + 1; number <= turns && open.length < limits.listMax; number += 1) {
      const turn = hasOutcome(checkpoint, number) ? undefined : await this.#ledger.store.turns.byNumber(session, number);
      if (turn !== undefined) open.push(turn);
    }
    return open;
  }

  /** How many turns wait behind a number without an outcome. */
  async waitingBehind(session: SessionId, number: number): Promise<number> {
    const view = await this.get(session);
    let waiting = 0;
    for (let n = Math.max(number, view.checkpoint.through) + 1; n <= view.turns && waiting < limits.listMax; n += 1) {
      if (!hasOutcome(view.checkpoint, n)) waiting += 1;
    }
    return waiting;
  }

  async #part(owner: Ownership, hash: string): Promise<string> {
    const text = await this.#ledger.store.parts.get(hash);
    if (text === undefined)
      throw new HeadfastError("document_invalid", `prefix_parts ${hash} of session ${JSON.stringify(owner.session)} is missing`, {
        data: { session: owner.session },
      });
    return text;
  }
}
