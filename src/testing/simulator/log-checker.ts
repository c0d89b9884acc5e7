/**
 * Judges every entry of every log as soon as it has a majority, from the history alone: it computes what the log should
 * say from the entries' kinds and turns, and never asks the code under test.
 */
import { checkChain, type Tail } from "../../domain/entry.ts";
import type { SessionId } from "../../domain/ids.ts";
import { emptyTail } from "../../domain/log.ts";
import type { Entry, Ownership, Turn } from "../../domain/records.ts";
import type { History } from "./history.ts";

/** What went wrong, and which invariant says so. */
export class Violation extends Error {
  readonly invariant: string;
  constructor(invariant: string, message: string) {
    super(`${invariant}: ${message}`);
    this.invariant = invariant;
  }
}

export function demand(condition: boolean, invariant: string, message: string): asserts condition {
  if (!condition) throw new Violation(invariant, message);
}

/** One session's log as the checker has followed it. */
export class FollowedLog {
  readonly session: SessionId;
  readonly entries: Entry[] = [];
  /** Rendered messages so far, in order. */
  readonly messages: string[] = [];
  /** Numbers that have outcomes. */
  readonly ended = new Map<number, Entry>();
  readonly #history: History;
  #tail: Pick<Tail, "seq" | "hash">;
  #bot: string;
  #epoch: number;
  #next: number[] = [];
  readonly #nextAt = new Map<number, number>();
  #open: { number: number; steps: number } | null = null;
  #parked: { turnId: string; generation: number } | null = null;
  #notes = new Set<string>();
  readonly #prefixes = new Map<string, string>();
  readonly #outcomes = new Map<string, Entry>();

  constructor(owner: Ownership, history: History) {
    this.session = owner.session;
    this.#history = history;
    this.#tail = emptyTail(owner);
    this.#bot = owner.bot;
    this.#epoch = owner.ownerEpoch;
  }

  get seq(): number {
    return this.#tail.seq;
  }

  get parked(): { turnId: string; generation: number } | null {
    return this.#parked;
  }

  get tell(): { notes: ReadonlySet<string> } {
    return { notes: this.#notes };
  }

  /** `turn`: the document of the turn that the entry is about. */
  follow(entry: Entry, turn: Turn | undefined): void {
    checkChain(entry, this.#tail);
    if (entry.turn !== null) this.#checkTurn(entry, turn);
    if (entry.kind === "step") this.#checkStep(entry);
    if (entry.kind === "dead") this.#checkMayRun(entry);
    this.#apply(entry);
    this.#checkCheckpoint(entry);
    this.entries.push(entry);
    this.#tail = entry;
  }

  #checkTurn(entry: Entry, turn: Turn | undefined): void {
    const named = entry.turn as NonNullable<Entry["turn"]>;
    demand(
      turn !== undefined && turn.turnId === named.turnId && turn.generation === named.generation,
      "I4",
      `entry ${entry.seq} is about turn ${named.number}, which nobody sent as ${named.turnId}#${named.generation}`,
    );
    if (entry.kind !== "next" && entry.kind !== "discarded")
      demand(!this.ended.has(named.number), "I4", `entry ${entry.seq} (${entry.kind}) is about turn ${named.number}, which has an outcome`);
    if (entry.outcome === null) return;
    const before = this.#outcomes.get(`${named.turnId}#${named.generation - 1}`);
    demand(
      named.generation === 0 || before?.outcome === "dead",
      "I4",
      `generation ${named.generation} of ${named.turnId} ended, while the one before is ${before?.outcome}`,
    );
    const all = [...this.#outcomes.entries()].filter(
      ([key, ended]) => key.slice(0, key.lastIndexOf("#")) === named.turnId && ended.outcome !== "dead",
    );
    demand(all.length === 0, "I4", `${named.turnId} ended ${entry.outcome} after it had ended ${all[0]?.[1].outcome}`);
  }

  #checkStep(entry: Entry): void {
    const { number } = entry.turn as NonNullable<Entry["turn"]>;
    if (this.#open !== null)
      demand(this.#open.number === number, "I3", `turn ${number} took a step while turn ${this.#open.number} was open`);
    else this.#checkMayRun(entry);
    demand(
      entry.step === (this.#open?.steps ?? 0) + 1,
      "I4",
      `step ${entry.step} of turn ${number} follows ${this.#open?.steps ?? 0} recorded steps`,
    );
    this.#checkBytes(entry);
  }

  /** I3: by number, but for what was put to the head and what a parked session waits for. */
  #checkMayRun(entry: Entry): void {
    const { number, turnId, generation } = entry.turn as NonNullable<Entry["turn"]>;
    if (this.#open !== null) {
      demand(this.#open.number === number, "I3", `turn ${number} ended while turn ${this.#open.number} was open`);
      return;
    }
    if (this.#parked !== null) {
      demand(
        turnId === this.#parked.turnId && generation === this.#parked.generation + 1,
        "I3",
        `turn ${number} ran while the session was parked at ${this.#parked.turnId}`,
      );
      return;
    }
    const [first] = this.#next;
    if (first !== undefined) {
      // One that had begun before another was put to the head ends first (rule 9).
      const began = this.#history.stayBegan(entry.worker, this.session);
      if ([...this.#nextAt.entries()].every(([n, at]) => !this.#next.includes(n) || at >= began)) return;
      demand(number === first, "I3", `turn ${number} ran before turn ${first}, which was put to the head`);
      return;
    }
    for (let lower = 1; lower < number; lower += 1) demand(this.ended.has(lower), "I3", `turn ${number} ran before turn ${lower}`);
  }

  /** I1 and I2, on the body that was sent: parsed, without cache marks. */
  #checkBytes(entry: Entry): void {
    const { turnId } = entry.turn as NonNullable<Entry["turn"]>;
    const call = this.#history.calls.findLast(
      (made) =>
        made.session === this.session &&
        made.turnId === turnId &&
        made.step === entry.step &&
        made.process === entry.worker &&
        made.result === "ok",
    );
    demand(call !== undefined, "I2", `step ${entry.step} of ${turnId} was recorded without a call of ${entry.worker}`);
    const sent = cachedParts(call.body);
    demand(
      sent.model === `model-of-${this.#bot}`,
      "I5",
      `step ${entry.step} of ${turnId} was made by ${sent.model}, the owner is ${this.#bot}`,
    );
    const expected = [...this.messages, ...entry.rendered.slice(0, -1)].map((text) => JSON.stringify(JSON.parse(text)));
    demand(
      sent.messages.length === expected.length && sent.messages.every((text, i) => text === expected[i]),
      "I2",
      `the request of step ${entry.step} of ${turnId} is not the recorded log and what it appended`,
    );
    const key = `${this.#epoch}.${entry.checkpoint.baseline}`;
    const known = this.#prefixes.get(key) ?? sent.prefix;
    this.#prefixes.set(key, known);
    demand(known === sent.prefix, "I1", `the prefix changed within baseline ${key}`);
  }

  #apply(entry: Entry): void {
    this.messages.push(...entry.rendered);
    if (entry.kind === "step") this.#open = { number: entry.turn?.number ?? 0, steps: entry.step ?? 0 };
    // One that was cancelled before it came to the head has nothing left to run: the entry then only settles what is owed.
    if (entry.kind === "next" && entry.turn !== null && !this.#next.includes(entry.turn.number) && !this.ended.has(entry.turn.number)) {
      this.#next.push(entry.turn.number);
      this.#nextAt.set(entry.turn.number, this.#history.step);
    }
    if (entry.kind === "reowned") {
      demand(entry.checkpoint.ownerEpoch === this.#epoch + 1, "I5", `re-own to epoch ${entry.checkpoint.ownerEpoch} after ${this.#epoch}`);
      this.#epoch += 1;
      this.#bot = entry.checkpoint.bot;
    }
    if (entry.kind === "discarded" && this.#parked?.turnId === entry.turn?.turnId) this.#parked = null;
    for (const message of entry.messages)
      if (message.role === "user") for (const block of message.blocks) if (block.type === "note") this.#tellNote(block.text);
    if (entry.outcome !== null && entry.turn !== null) this.#end(entry);
  }

  #tellNote(text: string): void {
    demand(!this.#notes.has(text), "I7", `the note ${JSON.stringify(text)} was told twice`);
    this.#notes.add(text);
  }

  #end(entry: Entry): void {
    const { number, turnId, generation } = entry.turn as NonNullable<Entry["turn"]>;
    this.ended.set(number, entry);
    this.#outcomes.set(`${turnId}#${generation}`, entry);
    this.#next = this.#next.filter((n) => n !== number);
    if (this.#open?.number === number) this.#open = null;
    if (entry.parks) this.#parked = { turnId, generation };
    else if (this.#parked?.turnId === turnId && generation > this.#parked.generation) this.#parked = null;
  }

  /** The decision state that the entry carries is what its log says. */
  #checkCheckpoint(entry: Entry): void {
    const { through, open, bot, ownerEpoch, parked } = entry.checkpoint;
    let reached = 0;
    while (this.ended.has(reached + 1)) reached += 1;
    demand(through === reached, "I4", `entry ${entry.seq} says through ${through}, the log says ${reached}`);
    demand(
      (open?.number ?? null) === (this.#open?.number ?? null),
      "I3",
      `entry ${entry.seq} says open ${open?.number}, the log says ${this.#open?.number}`,
    );
    demand(
      bot === this.#bot && ownerEpoch === this.#epoch,
      "I5",
      `entry ${entry.seq} says owner ${bot} of epoch ${ownerEpoch}, the log says ${this.#bot} of ${this.#epoch}`,
    );
    demand(
      parked?.turnId === this.#parked?.turnId,
      "I3",
      `entry ${entry.seq} says parked at ${parked?.turnId}, the log says ${this.#parked?.turnId}`,
    );
  }
}

/** A request's parts in one spelling, without cache marks and parameters. */
export function cachedParts(body: string): { model: string; prefix: string; messages: string[] } {
  const parsed = JSON.parse(body, (key, value: unknown) => (key === "cache_control" ? undefined : value)) as {
    model: string;
    tools?: unknown;
    system?: unknown;
    messages: unknown[];
  };
  return {
    model: parsed.model,
    prefix: JSON.stringify([parsed.tools ?? null, parsed.system ?? null]),
    messages: parsed.messages.map((message) => JSON.stringify(message)),
  };
}
