/**
 * The composition root: configuration becomes adapters, adapters become a host and a worker; what is started in order
 * is stopped in reverse. As a library Headfast handles no signals and logs only to the logger it is given.
 */
import { Worker } from "./actors/worker.ts";
import { HeadfastError } from "./domain/errors.ts";
import { type BotName, checkBotName } from "./domain/ids.ts";
import { limits } from "./domain/limits.ts";
import type { Bot, Ledger, Logger, MemoryRepository, Model, Queues, Store, System, Tool } from "./domain/ports.ts";
import { toolsText } from "./domain/prefix.ts";
import { HostDeadLetters } from "./host/dead-letters.ts";
import { HostInbox } from "./host/inbox.ts";
import { HostSessions } from "./host/sessions.ts";
import { HostTurns } from "./host/turns.ts";
import { gitRepository } from "./memory/repository.ts";
import { scriptedModel } from "./models/scripted.ts";
import { openQueues } from "./queues/queues.ts";
import { checkConnection, checkWorkerSettings } from "./settings.ts";
import { openMongoStore } from "./store/store.ts";
import { processName, realSystem } from "./system.ts";
import { memoryQueues } from "./testing/memory-queues.ts";
import { memoryStore } from "./testing/memory-store.ts";
import { fileTools } from "./tools/files.ts";

export interface BotDefinition {
  name: BotName;
  model: Model;
  /** Path of the bot's Memory Repository: a git working tree. Absent: the bot has none. */
  memory?: string | MemoryRepository;
  /** Own tools, from `defineTool`. A bot with a Memory Repository has the file tools too, unless `fileTools: false`. */
  tools?: readonly Tool[];
  fileTools?: boolean;
  /** Static role and rule text; frozen with each session's prefix. */
  rolePrompts?: readonly string[];
  /** Tries of a turn before it is dead. */
  attempts?: number;
  /** `skip`: the session goes on past a dead turn. `park`: it waits for a replay or a discard. */
  onDead?: "skip" | "park";
}

/** Where the Memory Repository is, said in the last sentence of our own role prompt. */
const memoryPrompt =
  "Read and change files with the tools you are given. Notices about changed files reach you at the bottom of the conversation. Your Memory Repository is at /memory.";

/** Checks a bot whole, once. @throws `configuration`, `invalid_id` */
export function defineBot(definition: BotDefinition): Bot {
  checkDefinition(definition);
  const { model, attempts = limits.attemptsMax, onDead = "skip" } = definition;
  const memory =
    typeof definition.memory === "string" ? gitRepository({ path: definition.memory, system: realSystem }) : (definition.memory ?? null);
  const ownTools = definition.tools ?? [];
  const tools = memory !== null && definition.fileTools !== false ? [...fileTools(), ...ownTools] : ownTools;
  toolsText(tools);
  if (!Number.isInteger(attempts) || attempts < 1 || attempts > 100)
    throw new HeadfastError("configuration", `attempts must be a whole number from 1 to 100, got ${attempts}`);
  if (onDead !== "skip" && onDead !== "park")
    throw new HeadfastError("configuration", `onDead must be "skip" or "park", got ${JSON.stringify(onDead)}`);
  const rolePrompts = [...(definition.rolePrompts ?? []).map((text) => text.toWellFormed()), ...(memory === null ? [] : [memoryPrompt])];
  return { name: checkBotName(definition.name), model, tools, rolePrompts, memory, attemptsMax: attempts, onDead };
}

const botFields = new Set(["name", "model", "memory", "tools", "fileTools", "rolePrompts", "attempts", "onDead"]);

/** What a program without types may get wrong: each field by its name. */
function checkDefinition(definition: BotDefinition): void {
  const no = (what: string): HeadfastError => new HeadfastError("configuration", `defineBot: ${what}`);
  if (definition === null || typeof definition !== "object") throw no("give an object { name, model, … }");
  const unknown = Object.keys(definition).find((field) => !botFields.has(field));
  if (unknown !== undefined) throw no(`there is no field ${JSON.stringify(unknown)}; there are ${[...botFields].join(", ")}`);
  const { memory, tools, rolePrompts, model } = definition;
  if (memory !== undefined && (typeof memory === "string" ? memory === "" : typeof memory?.look !== "function"))
    throw no("memory must be the path of a git working tree");
  if (rolePrompts !== undefined && !(Array.isArray(rolePrompts) && rolePrompts.every((text) => typeof text === "string")))
    throw no("rolePrompts must be a list of texts");
  if (
    tools !== undefined &&
    !(
      Array.isArray(tools) &&
      tools.every(
        (tool) =>
          typeof tool?.run === "function" &&
          typeof tool.name === "string" &&
          typeof tool.description === "string" &&
          tool.inputSchema !== undefined,
      )
    )
  )
    throw no("tools must be a list of what defineTool gives");
  if (typeof model?.call !== "function") throw no("model must be an object with a call, as docs/models.md says");
  if (
    typeof model.name !== "string" ||
    typeof model.limitKey !== "string" ||
    !(model.maxTokens > 0) ||
    typeof model.dialect?.renderBody !== "function"
  )
    throw no("model must have name, dialect, maxTokens and limitKey, as docs/models.md says");
}

export interface Connection {
  /** Redis URL. Absent, with `mongo` absent too: everything in memory, for trying and for tests. */
  redis?: string;
  /** MongoDB URL. */
  mongo?: string;
  /** The unit of deployment: names the keys in Redis and the database in MongoDB. */
  namespace?: string;
  /** Number of shards; stored once, checked at each start. */
  shards?: number;
  logger?: Logger;
  /** Injected parts, for tests: they stay open when Headfast is closed. */
  parts?: { store?: Store; queues?: Queues; system?: System };
}

export interface WorkerSettings {
  bots: readonly Bot[];
  /** Sessions that run at the same time in this process. */
  concurrency?: number;
  /** Look at each Memory Repository this often, in milliseconds, besides before each turn; 0 = not on a schedule. */
  observeEveryMs?: number;
  /** How long a closing worker lets running turns finish, in milliseconds. */
  drainMs?: number;
}

export const silentLogger: Logger = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

interface Opened {
  ledger: Ledger;
  queues: Queues;
  log: Logger;
  close(): Promise<void>;
}

async function open(connection: Connection): Promise<Opened> {
  const log = connection.logger ?? silentLogger;
  const system = connection.parts?.system ?? realSystem;
  const namespace = connection.namespace ?? "headfast";
  if ((connection.redis === undefined) !== (connection.mongo === undefined))
    throw new HeadfastError("configuration", "give both redis and mongo, or neither (everything in memory)");
  const inMemory = connection.redis === undefined;
  const store =
    connection.parts?.store ??
    (inMemory ? memoryStore() : await openMongoStore({ url: connection.mongo as string, database: namespace, system, log }));
  const closeStore = connection.parts?.store === undefined ? () => store.close() : async () => undefined;
  try {
    const shards = await agreedShards(store, connection.shards);
    const queues =
      connection.parts?.queues ??
      (inMemory ? memoryQueues({ system, shards }) : await openQueues({ url: connection.redis as string, namespace, shards, system, log }));
    const closeQueues = connection.parts?.queues === undefined ? () => queues.close() : async () => undefined;
    const ledger: Ledger = { store, system, worker: processName(), shardOf: (session) => queues.shardOf(session) };
    return {
      ledger,
      queues,
      log,
      close: async () => {
        await closeQueues();
        await closeStore();
      },
    };
  } catch (error) {
    await closeStore();
    throw error;
  }
}

/** The number of shards is stored once; a process that wants another one refuses to start (rule 16). */
async function agreedShards(store: Store, wanted: number | undefined): Promise<number> {
  const standing = Number(await store.settings.once("shards", String(wanted ?? 1)));
  if (wanted !== undefined && standing !== wanted)
    throw new HeadfastError(
      "shards_differ",
      `this namespace has ${standing} shards, not ${wanted}; start with ${standing}, or use another namespace`,
      { data: { standing, wanted } },
    );
  return standing;
}

/** A host and, where bots are given, a worker. */
export class Headfast {
  readonly turns: HostTurns;
  readonly sessions: HostSessions;
  readonly inbox: HostInbox;
  readonly deadLetters: HostDeadLetters;
  readonly #opened: Opened;
  readonly #worker: Worker | null;
  readonly #drainMs: number;

  private constructor(opened: Opened, worker: Worker | null, drainMs: number) {
    const { ledger, queues } = opened;
    this.turns = new HostTurns(ledger, queues);
    this.sessions = new HostSessions(ledger, queues);
    this.inbox = new HostInbox(ledger, queues);
    this.deadLetters = new HostDeadLetters(ledger, queues, this.sessions);
    this.#opened = opened;
    this.#worker = worker;
    this.#drainMs = drainMs;
  }

  /** Host and worker in one process. Without URLs everything is in memory. */
  static async start(options: Connection & WorkerSettings): Promise<Headfast> {
    checkWorkerSettings("Headfast.start", options);
    const opened = await open(options);
    try {
      const worker = await runWorker(opened, options);
      return new Headfast(opened, worker, options.drainMs ?? limits.drainMs);
    } catch (error) {
      await opened.close();
      throw error;
    }
  }

  /** A host alone: sends, waits, operates. */
  static async connect(options: Connection): Promise<Headfast> {
    checkConnection("Headfast.connect", options);
    if (options.redis === undefined && options.parts === undefined)
      throw new HeadfastError(
        "configuration",
        "Headfast.connect needs the URLs of redis and mongo; in memory a host needs its worker beside it: Headfast.start",
      );
    return new Headfast(await open(options), null, 0);
  }

  /** Asks for a look at the bot's Memory Repository, by whichever worker serves it. Starts no turn. */
  async observe(bot: BotName, reason = "asked"): Promise<void> {
    await this.#opened.queues.observations.request(checkBotName(bot), reason);
  }

  /** The ports underneath, for operators' tools. */
  get internals(): { ledger: Ledger; queues: Queues; worker: Worker | null } {
    return { ledger: this.#opened.ledger, queues: this.#opened.queues, worker: this.#worker };
  }

  async close(): Promise<void> {
    await this.#worker?.close(this.#drainMs);
    await this.#opened.close();
  }
}

/** A worker alone. */
export interface RunningWorker {
  /** Takes nothing new, lets running turns finish for `drainMs`, aborts what still runs, closes everything. */
  close(drainMs?: number): Promise<void>;
  readonly counts: ReadonlyMap<string, number>;
}

export async function startWorker(options: Connection & WorkerSettings): Promise<RunningWorker> {
  checkWorkerSettings("startWorker", options);
  const opened = await open(options);
  try {
    const worker = await runWorker(opened, options);
    return {
      counts: worker.counts,
      close: async (drainMs = options.drainMs ?? limits.drainMs) => {
        await worker.close(drainMs);
        await opened.close();
      },
    };
  } catch (error) {
    await opened.close();
    throw error;
  }
}

async function runWorker({ ledger, queues, log }: Opened, settings: WorkerSettings): Promise<Worker> {
  const { bots, concurrency = 64, observeEveryMs = 0 } = settings;
  const worker = new Worker({ ledger, queues, bots, log, concurrency, observeEveryMs });
  await worker.start();
  return worker;
}

// ── for the command line ───────────────────────────────────────────────────────────────────────────

export { activationsKnown, inspectRedis, type RedisInspection, type SessionAhead, sessionsAhead } from "./queues/inspect.ts";
export { addressFault } from "./settings.ts";
export { inspectMongo, type MongoInspection } from "./store/inspect.ts";

/** The Memory Repository in a folder, for a look from outside. */
export function memoryAt(path: string): MemoryRepository {
  return gitRepository({ path, system: realSystem });
}

/** A bot without a provider, to try a Memory Repository with: it answers in plain words and uses the file tools when asked. */
export function trialBot(name: BotName, memory: string): Bot {
  return defineBot({ name, memory, model: scriptedModel(undefined, { system: realSystem }) });
}
