/**
 * A world for one test: store and queues in memory that outlive every worker and host on them, so that a restart is
 * real; each request body as it went out; what was logged. Two workers on one world behave as two processes do: they
 * share nothing but store and queues.
 */

import type { TurnRequest } from "../../src/domain/acceptance.ts";
import type { Bot, Logger, Model, System } from "../../src/domain/ports.ts";
import type { Entry, Ownership, Turn } from "../../src/domain/records.ts";
import type { Ended } from "../../src/host/turn-watch.ts";
import { type BotDefinition, defineBot, Headfast, type RunningWorker, startWorker } from "../../src/main.ts";
import type { Script } from "../../src/models/script.ts";
import { type RecordedRequest, type ScriptedOptions, scriptedModel } from "../../src/models/scripted.ts";
import { realSystem } from "../../src/system.ts";
import { type FakeClock, fakeClock } from "../../src/testing/fake-clock.ts";
import { type MemoryQueues, memoryQueues } from "../../src/testing/memory-queues.ts";
import { type MemoryStore, memoryStore } from "../../src/testing/memory-store.ts";

export interface LogLine {
  level: keyof Logger;
  data: Record<string, unknown>;
  message: string;
}

/** What a person says, where the bot is the only one of the test. */
export type Saying = Partial<Omit<TurnRequest, "session" | "input">>;

export class World {
  readonly store: MemoryStore = memoryStore();
  readonly queues: MemoryQueues;
  readonly system: System;
  /** Every request of every model of this world, oldest first. */
  readonly requests: RecordedRequest[] = [];
  readonly logs: LogLine[] = [];
  readonly #hosts: Headfast[] = [];
  readonly #workers = new Set<RunningWorker>();
  #said = 0;

  constructor(system: System) {
    this.system = system;
    this.queues = memoryQueues({ system, shards: 1 });
  }

  get #parts() {
    return { store: this.store, queues: this.queues, system: this.system };
  }

  /** One more host. */
  async host(): Promise<Headfast> {
    const host = await Headfast.connect({ parts: this.#parts });
    this.#hosts.push(host);
    return host;
  }

  /** The first host of the world. */
  async first(): Promise<Headfast> {
    return this.#hosts[0] ?? this.host();
  }

  /** One more worker, cold. */
  async worker(bots: readonly Bot[], concurrency = 16): Promise<RunningWorker> {
    const worker = await startWorker({ bots, concurrency, logger: this.#logger(), parts: this.#parts });
    this.#workers.add(worker);
    return worker;
  }

  /** Stops a worker; what still runs is aborted at once and stays first. */
  async stop(worker: RunningWorker): Promise<void> {
    this.#workers.delete(worker);
    const closing = worker.close(0);
    if (isFake(this.system)) await this.system.advance(0);
    await closing;
  }

  /** All workers are gone; one fresh and cold one takes over what store and queues hold. */
  async restart(bots: readonly Bot[], concurrency?: number): Promise<RunningWorker> {
    for (const worker of this.#workers) await this.stop(worker);
    return this.worker(bots, concurrency);
  }

  /** A scripted model whose requests are kept in the world, before they are judged or answered. */
  model(script: Script = ({ lastUserText }) => `re: ${lastUserText}`, options: ScriptedOptions = {}): Model {
    const { name, dialect, maxTokens, limitKey, call } = scriptedModel(script, { system: this.system, ...options });
    const recorded: Model["call"] = (request) => {
      this.requests.push({ body: request.body, session: request.session, turnId: request.turnId, step: request.step });
      return call(request);
    };
    return { name, dialect, maxTokens, limitKey, call: recorded };
  }

  /** The bot `ada`, unless told otherwise. */
  bot(more: Partial<BotDefinition> = {}): Bot {
    return defineBot({ name: "ada", model: this.model(), rolePrompts: ["You answer briefly."], ...more });
  }

  /** Sends a turn and waits for its outcome. */
  async say(session: string, input: string, more: Saying = {}): Promise<Ended> {
    const { turns } = await this.first();
    return turns.wait(await turns.send({ bot: "ada", session, turnId: `t${++this.#said}`, input, ...more }));
  }

  /** Raw bodies of a session, oldest first. */
  bodies(session: string): string[] {
    return this.requests.filter((request) => request.session === session).map(({ body }) => body);
  }

  entries(session: string): Entry[] {
    return this.store.contents().entries.filter((entry) => entry.session === session);
  }

  turns(session: string): Turn[] {
    return this.store.contents().turns.filter((turn) => turn.session === session);
  }

  owner(session: string): Ownership | undefined {
    return this.store.contents().ownership.find((owner) => owner.session === session);
  }

  /** Lines of a level whose data has this code. */
  logged(code: string): LogLine[] {
    return this.logs.filter(({ data }) => data.code === code);
  }

  /** A hand in the database: from now on every read of this session's ownership has these fields. `undefined` takes one off. */
  editOwner(session: string, fields: Record<string, unknown>): void {
    const { get } = this.store.ownership;
    const edited = (owner: Ownership | undefined) => (owner === undefined ? undefined : ({ ...owner, ...fields } as Ownership));
    this.store.ownership.get = async (asked) => (asked === session ? edited(await get(asked)) : get(asked));
  }

  /** A hand in the transcript: from now on every read of this entry is changed. */
  editEntry(session: string, seq: number, change: (entry: Entry) => Entry): void {
    const { get, read } = this.store.log;
    const edited = (entry: Entry): Entry => (entry.session === session && entry.seq === seq ? change(entry) : entry);
    this.store.log.get = async (...args) => {
      const entry = await get(...args);
      return entry && edited(entry);
    };
    this.store.log.read = async (...args) => (await read(...args)).map(edited);
  }

  /** A hand in `prefix_parts`: the text of this hash reads otherwise; `undefined`: it is gone, until it is put again. */
  editPart(sha256: string, edited: string | undefined): void {
    const { get, put } = this.store.parts;
    let standing = edited;
    this.store.parts.get = async (asked) => (asked === sha256 ? standing : get(asked));
    this.store.parts.put = async (asked, text) => {
      if (asked !== sha256 || standing !== undefined) return put(asked, text);
      standing = text;
      return "inserted";
    };
  }

  async close(): Promise<void> {
    for (const worker of this.#workers) await this.stop(worker);
    for (const host of this.#hosts) await host.close();
    await this.queues.close();
  }

  #logger(): Logger {
    const at = (level: keyof Logger) => (data: Record<string, unknown>, message: string) => void this.logs.push({ level, data, message });
    return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  }
}

/** A test body with a world in real time, closed whatever happens. */
export function inWorld(body: (world: World) => Promise<void>): () => Promise<void> {
  return () => closing(new World(realSystem), body);
}

/** The same on a clock that moves when told to. */
export function inFakeTime(body: (world: World, clock: FakeClock) => Promise<void>, start?: number): () => Promise<void> {
  return () => {
    const clock = fakeClock(start);
    return closing(new World(clock), (world) => body(world, clock));
  };
}

async function closing(world: World, body: (world: World) => Promise<void>): Promise<void> {
  try {
    await body(world);
  } finally {
    await world.close();
  }
}

function isFake(system: System): system is FakeClock {
  return "advance" in system;
}

/** A promise that is opened from outside. */
export function gate(): { opened: Promise<void>; open(): void } {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}

/** Resolves when the condition holds, looked at after each turn of the event loop; rejects after many. */
export async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let looks = 0; looks < 20_000; looks += 1) {
    if (await condition()) return;
    await new Promise((resolve) => setImmediate(resolve));
  }
  throw new Error(`never came true: ${what}`);
}

// ── bytes ──────────────────────────────────────────────────────────────────────────────────────────

const messagesOpen = '"messages":[';

/** The raw bytes of a body before its first message: parameters, tools, system, with their cache marks. */
export function promptSection(body: string): Buffer {
  return Buffer.from(body.slice(0, body.indexOf(messagesOpen) + messagesOpen.length));
}

/**
 * The cached sequence of a body, taken from its text alone and without the product's own cuts: parameters, marks and end
 * are cut off. Inside a JSON string each quote is escaped, so none of these patterns can match there.
 */
export function sequenceOf(body: string): string {
  return body
    .replace(/^\{"model":"[^"]*","max_tokens":\d+,/, "")
    .replace(/,"cache_control":\{[^}]*\}/g, "")
    .replace(/\]\}$/, "");
}

/** The index of the first text that is not the one before it, in bytes; null where all are equal. */
export function firstChange(sections: readonly Uint8Array[]): number | null {
  const at = sections.findIndex((section, i) => i > 0 && !Buffer.from(section).equals(sections[i - 1] as Uint8Array));
  return at === -1 ? null : at;
}

/** The index of the first body whose cached sequence is not continued, byte for byte, by the next one's; null where each is. */
export function firstBreak(bodies: readonly string[]): number | null {
  const sequences = bodies.map(sequenceOf);
  const at = sequences.findIndex((sequence, i) => i > 0 && !continues(sequences[i - 1] as string, sequence));
  return at === -1 ? null : at;
}

function continues(before: string, after: string): boolean {
  const [head, whole] = [Buffer.from(before), Buffer.from(after)];
  return whole.length > head.length && whole.subarray(0, head.length).equals(head) && whole[head.length] === ",".charCodeAt(0);
}

/** The text blocks of a body's system part. */
export function systemTexts(body: string): string[] {
  return ((JSON.parse(body) as { system?: { text: string }[] }).system ?? []).map(({ text }) => text);
}

interface Block {
  type: string;
  text?: string;
  content?: string;
}

/** The last message of a body, its blocks as text. */
export function lastMessage(body: string): string[] {
  const { messages } = JSON.parse(body) as { messages: { content: Block[] }[] };
  return (messages.at(-1)?.content ?? []).map((block) => block.text ?? block.content ?? "");
}
