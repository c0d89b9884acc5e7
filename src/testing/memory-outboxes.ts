/** Inbox, letters and requests for looks, in memory. */
import { type BotName, type SessionId, type TurnId, turnKey } from "../domain/ids.ts";
import { limits } from "../domain/limits.ts";
import type { InboxItem, InboxQueue, Letter, LetterQueue, ObservationQueue, RefusedJob } from "../domain/ports.ts";

export class MemoryInbox implements InboxQueue {
  /** Raw: items by session and id; no entry for an empty inbox. */
  readonly items = new Map<SessionId, Map<string, InboxItem>>();

  async publish(session: SessionId, item: InboxItem): Promise<void> {
    const items = this.items.get(session) ?? new Map<string, InboxItem>();
    items.delete(item.id);
    items.set(item.id, item);
    this.items.set(session, items);
  }

  async remove(session: SessionId, ids: readonly string[]): Promise<void> {
    const items = this.items.get(session);
    for (const id of ids) items?.delete(id);
    if (items?.size === 0) this.items.delete(session); // I10
  }

  async list(session: SessionId): Promise<InboxItem[]> {
    return [...(this.items.get(session)?.values() ?? [])];
  }
}

export class MemoryLetters implements LetterQueue {
  /** Raw: letters and refused jobs by their own key. */
  readonly kept = new Map<string, unknown>();

  async put(letter: Letter): Promise<void> {
    const key = letterKey(letter.session, letter.turnId, letter.generation);
    if (!this.kept.has(key)) this.kept.set(key, letter);
  }

  async remove(session: SessionId, turnId: TurnId, generation: number): Promise<void> {
    this.kept.delete(letterKey(session, turnId, generation));
  }

  async putRefused(session: SessionId, job: RefusedJob): Promise<void> {
    const key = JSON.stringify(["refused", session, job.jobId]);
    if (!this.kept.has(key)) this.kept.set(key, { session, ...job });
  }

  async list(limit: number): Promise<unknown[]> {
    return [...this.kept.values()].slice(0, Math.min(limit, limits.listMax));
  }
}

function letterKey(session: SessionId, turnId: TurnId, generation: number): string {
  return JSON.stringify([session, turnKey(turnId, generation)]);
}

interface Looker {
  bots: ReadonlySet<BotName>;
  handler: (bot: BotName, reason: string) => Promise<void>;
}

/** One look of a bot at a time; asking again while one waits is one look, asking while one runs is one more. */
export class MemoryObservations implements ObservationQueue {
  readonly #asked = new Map<BotName, string>();
  readonly #running = new Map<BotName, Promise<void>>();
  readonly #lookers = new Set<Looker>();

  async request(bot: BotName, reason: string): Promise<void> {
    if (!this.#asked.has(bot)) this.#asked.set(bot, reason);
    this.#pump();
  }

  async work(bots: readonly BotName[], handler: Looker["handler"]): Promise<{ close(): Promise<void> }> {
    const looker = { bots: new Set(bots), handler };
    this.#lookers.add(looker);
    this.#pump();
    return {
      close: async () => {
        this.#lookers.delete(looker);
        await Promise.all(bots.map((bot) => this.#running.get(bot)));
      },
    };
  }

  clear(): void {
    this.#asked.clear();
  }

  async close(): Promise<void> {
    this.#lookers.clear();
    await Promise.all(this.#running.values());
  }

  #pump(): void {
    for (const [bot, reason] of [...this.#asked]) {
      const looker = [...this.#lookers].find((one) => one.bots.has(bot));
      if (looker === undefined || this.#running.has(bot)) continue;
      this.#asked.delete(bot);
      this.#running.set(bot, this.#look(looker, bot, reason));
    }
  }

  /** A look that failed is the asker's to repeat: the next activation looks anyway. */
  async #look(looker: Looker, bot: BotName, reason: string): Promise<void> {
    await Promise.resolve();
    await looker.handler(bot, reason).catch(() => undefined);
    this.#running.delete(bot);
    this.#pump();
  }
}
