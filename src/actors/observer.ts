/**
 * The memory observer: looks at a bot's Memory Repository when asked (start-up, a hook, a host, a schedule) and keeps
 * the pending notice of each live session in its inbox. Everything it writes is a projection: twice is harmless, late is
 * harmless, and the holder of a session computes its own notice (rule 8). It starts no turn (I9).
 */
import { asHeadfastError } from "../domain/errors.ts";
import type { BotName } from "../domain/ids.ts";
import { limits } from "../domain/limits.ts";
import { readTail } from "../domain/log.ts";
import type { Bot, Ledger, Logger, Queues } from "../domain/ports.ts";
import type { ManifestEntry, MemoryState, Ownership } from "../domain/records.ts";
import { keepManifest, noticeOf } from "./gathering.ts";

export type Observed = { result: "unchanged" | "not_ready" | "failed"; sessions: 0 } | { result: "changed"; sessions: number };

export class MemoryObserver {
  readonly #ledger: Ledger;
  readonly #queues: Queues;
  readonly #bots: ReadonlyMap<BotName, Bot>;
  readonly #log: Logger;
  readonly #manifests: Map<string, readonly ManifestEntry[]>;
  /** What was published last, per bot: an unchanged look writes nothing. */
  readonly #published = new Map<BotName, string>();
  readonly #asked = new Map<BotName, string>();

  constructor(
    ledger: Ledger,
    queues: Queues,
    bots: ReadonlyMap<BotName, Bot>,
    manifests: Map<string, readonly ManifestEntry[]>,
    log: Logger,
  ) {
    this.#ledger = ledger;
    this.#queues = queues;
    this.#bots = bots;
    this.#manifests = manifests;
    this.#log = log;
  }

  /** A session's own look found a state that nobody has published: ask for an observation, once per state. */
  sawState(bot: Bot, seen: MemoryState): void {
    const key = stateKey(seen);
    if (this.#published.get(bot.name) === key || this.#asked.get(bot.name) === key) return;
    const first = !this.#published.has(bot.name) && !this.#asked.has(bot.name);
    this.#asked.set(bot.name, key);
    if (first) return; // the start-up look does it
    this.#queues.observations
      .request(bot.name, "a session saw a change")
      .catch((error: unknown) => this.#log.debug({ error: String(error) }, "an observation could not be asked for"));
  }

  /** One look, and a pending notice for every live session that it concerns. */
  async observe(name: BotName, reason: string): Promise<Observed> {
    const memory = this.#bots.get(name)?.memory;
    if (memory == null) return { result: "unchanged", sessions: 0 };
    try {
      const look = await memory.look();
      if (look.state === "not_ready") {
        this.#log.info({ bot: name, reason: look.reason }, "the Memory Repository is not ready");
        return { result: "not_ready", sessions: 0 };
      }
      return await this.#publish(name, look.seen, reason);
    } catch (error) {
      const ours = asHeadfastError(error);
      if (ours.code !== "memory_unreadable") throw ours;
      this.#log.warn({ bot: name, error: ours.message }, "the Memory Repository could not be looked at");
      return { result: "failed", sessions: 0 };
    }
  }

  async #publish(name: BotName, seen: MemoryState, reason: string): Promise<Observed> {
    const key = stateKey(seen);
    if (this.#published.get(name) === key) return { result: "unchanged", sessions: 0 };
    const { store, system } = this.#ledger;
    const live = await store.ownership.list({ bot: name, activeSince: system.now() - limits.liveMs, limit: limits.liveSessionsMax });
    let sessions = 0;
    for (const owner of live) if (await this.#project(owner, seen)) sessions += 1;
    this.#published.set(name, key);
    this.#log.info({ bot: name, reason, sessions }, "the Memory Repository was looked at");
    return { result: sessions > 0 ? "changed" : "unchanged", sessions } as Observed;
  }

  /** Replaces the session's pending notice whole, or takes it away. True where one was written. */
  async #project(owner: Ownership, seen: MemoryState): Promise<boolean> {
    const { store, system } = this.#ledger;
    const standing = await store.observations.get(owner.session);
    const tail = await readTail(store, owner);
    const heard = tail.checkpoint.heard ?? (standing?.baselineEpoch === tail.checkpoint.ownerEpoch ? standing.baseline : null);
    if (standing === undefined || heard === null) return false; // no first look yet: it is a silent baseline
    const text = await noticeOf({ ledger: this.#ledger, manifests: this.#manifests }, heard, tail.checkpoint.wrote, seen);
    if (text === null && standing.pending === null) return false;
    const pending = text === null ? null : { from: heard.state, to: seen.state, text };
    if (pending !== null) await keepManifest({ ledger: this.#ledger, manifests: this.#manifests }, seen);
    await store.observations.project(owner.session, tail.checkpoint.ownerEpoch, pending, new Date(system.now()).toISOString());
    if (text === null) await this.#queues.inbox.remove(owner.session, ["notice"]);
    else await this.#queues.inbox.publish(owner.session, { id: "notice", text });
    // A holder that told it in between removed nothing: what is no longer true goes now.
    if (text !== null && (await store.log.get(owner.session, tail.seq + 1)) !== undefined)
      await this.#withdraw(owner, tail.checkpoint.ownerEpoch);
    return text !== null;
  }

  async #withdraw(owner: Ownership, ownerEpoch: number): Promise<void> {
    await this.#ledger.store.observations.project(owner.session, ownerEpoch, null, new Date(this.#ledger.system.now()).toISOString());
    await this.#queues.inbox.remove(owner.session, ["notice"]);
  }
}

function stateKey({ state, branch }: MemoryState): string {
  return JSON.stringify([state, branch]);
}
