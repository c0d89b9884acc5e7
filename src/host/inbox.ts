/** The inbox of a session: facts that wake nobody (I9) and are told at the bottom of its next turn. */
import { checkText } from "../domain/acceptance.ts";
import { HeadfastError } from "../domain/errors.ts";
import { checkId, type SessionId } from "../domain/ids.ts";
import { limits } from "../domain/limits.ts";
import { findLast, readTail } from "../domain/log.ts";
import { requireOwner } from "../domain/operations.ts";
import type { InboxItem, Ledger, Queues } from "../domain/ports.ts";
import { type Note, recordVersion } from "../domain/records.ts";
import { bestEffort } from "./best-effort.ts";

export class HostInbox {
  readonly #ledger: Ledger;
  readonly #queues: Queues;

  constructor(ledger: Ledger, queues: Queues) {
    this.#ledger = ledger;
    this.#queues = queues;
  }

  /** A host's note for the session's next turn. Starts none. Resolves with its number. */
  async post({ session, text }: { session: SessionId; text: string }): Promise<{ number: number }> {
    checkId("session", session);
    const { store, system } = this.#ledger;
    const owner = await requireOwner(this.#ledger, session);
    const tail = await readTail(store, owner);
    const last = await findLast((n) => store.notes.get(session, n), tail.checkpoint.notesTold);
    const fresh: Note = {
      v: recordVersion,
      session,
      number: (last?.n ?? 0) + 1,
      text: checkText("text", text, limits.noteBytesMax),
      writer: system.id(),
      at: new Date(system.now()).toISOString(),
    };
    const number = await this.#place(fresh);
    const id = `note-${number}`;
    await bestEffort(() => this.#queues.inbox.publish(session, { id, text: fresh.text }));
    const after = await readTail(store, owner);
    if (after.checkpoint.notesTold >= number) await bestEffort(() => this.#queues.inbox.remove(session, [id])); // told in between
    return { number };
  }

  /** What waits: the pending notice, if it still holds, and the notes not told yet. Read from MongoDB. */
  async list(session: SessionId): Promise<InboxItem[]> {
    const { store } = this.#ledger;
    const owner = await requireOwner(this.#ledger, checkId("session", session));
    const { checkpoint } = await readTail(store, owner);
    const observation = await store.observations.get(session);
    const from = checkpoint.heard?.state ?? observation?.baseline?.state;
    const items: InboxItem[] = [];
    if (observation?.pending != null && observation.pending.from === from) items.push({ id: "notice", text: observation.pending.text });
    for (let number = checkpoint.notesTold + 1; items.length < limits.listMax; number += 1) {
      const note = await store.notes.get(session, number);
      if (note === undefined) break;
      items.push({ id: `note-${number}`, text: note.text });
    }
    return items;
  }

  /** Numbers are dense: the next one only after the one before was read (rule 1, for notes). */
  async #place(fresh: Note): Promise<number> {
    const { store, system } = this.#ledger;
    let { number } = fresh;
    for (let tries = 0; tries < limits.raceTriesMax; tries += 1) {
      if ((await store.notes.insert({ ...fresh, number })) === "inserted") return number;
      const standing = await store.notes.get(fresh.session, number);
      if (standing?.writer === fresh.writer) return number;
      if (standing === undefined) await system.sleep(1 + tries);
      else number += 1;
    }
    throw new HeadfastError("store_unavailable", `the notes of session ${JSON.stringify(fresh.session)} are too busy; post again`);
  }
}
