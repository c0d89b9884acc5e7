/** The in-memory ports as one simulated process sees them: every call waits for the scheduler and may meet a fault. */
import { HeadfastError } from "../../domain/errors.ts";
import type { ActivationRunner, Events, MemoryRepository, Queues, Store, TurnEvent } from "../../domain/ports.ts";
import type { MemoryQueues } from "../memory-queues.ts";
import type { MemoryStore } from "../memory-store.ts";
import type { Operation, Process, Scheduler } from "./scheduler.ts";

type Methods = Record<string, (...args: never[]) => Promise<unknown>>;

const reads = new Set(["get", "byNumber", "byId", "byKey", "read", "open", "letters", "list", "ofCall"]);

/** A port whose calls are operations of the scheduler. */
function wrapped<T extends object>(
  scheduler: Scheduler,
  process: Process,
  name: string,
  port: T,
  kindOf: (method: string) => Operation["kind"],
): T {
  const methods = port as unknown as Methods;
  const proxy = new Proxy(port, {
    get(_target, method) {
      const value = methods[method as string];
      if (typeof value !== "function") return value;
      return (...args: never[]) =>
        scheduler.call(process, `${name}.${String(method)}`, kindOf(String(method)), () => value.apply(port, args));
    },
  });
  return proxy;
}

export function storeOf(scheduler: Scheduler, process: Process, store: MemoryStore): Store {
  const kind = (method: string): Operation["kind"] => (reads.has(method) ? "read" : "write");
  const part = <K extends Exclude<keyof Store, "close">>(name: K): Store[K] => wrapped(scheduler, process, name, store[name], kind);
  return {
    ownership: part("ownership"),
    turns: part("turns"),
    log: part("log"),
    notes: part("notes"),
    observations: part("observations"),
    states: part("states"),
    parts: part("parts"),
    journal: part("journal"),
    settings: part("settings"),
    close: async () => undefined,
  };
}

/** Events of all processes: each delivered to each listener, unless its process is dead by then. */
export class EventBus {
  readonly #subscribers = new Map<string, Set<{ process: Process; listener: (event: TurnEvent) => void; onReconnect: () => void }>>();
  readonly #signals = new Map<Process, (session: string) => void>();
  /** For checkers. */
  readonly published: TurnEvent[] = [];
  /** Nothing arrives while this is true. */
  away = false;

  of(process: Process): Events {
    return {
      publish: (event) => {
        if (!process.alive || this.away) return;
        this.published.push(event);
        for (const one of [...(this.#subscribers.get(event.session) ?? [])])
          if (one.process.alive) queueMicrotask(() => one.listener(event));
      },
      subscribe: async (session, listener, onReconnect) => {
        const one = { process, listener, onReconnect };
        const all = this.#subscribers.get(session) ?? new Set();
        this.#subscribers.set(session, all.add(one));
        return async () => void all.delete(one);
      },
      signal: (session) => {
        if (this.away) return;
        for (const [listener, hear] of this.#signals) if (listener.alive) queueMicrotask(() => hear(session));
      },
      onSignal: async (listener) => {
        this.#signals.set(process, listener);
        return async () => void this.#signals.delete(process);
      },
    };
  }

  reconnected(): void {
    for (const all of this.#subscribers.values()) for (const one of [...all]) if (one.process.alive) one.onReconnect();
  }
}

export interface RedisState {
  away: boolean;
}

export function queuesOf(scheduler: Scheduler, process: Process, queues: MemoryQueues, bus: EventBus, redis: RedisState): Queues {
  const call = <T>(label: string, apply: () => Promise<T>): Promise<T> =>
    scheduler.call(process, label, "queue", async () => {
      if (redis.away) throw new HeadfastError("queue_unavailable", "the simulated Redis is away");
      return apply();
    });
  const none = async (): Promise<{ close(): Promise<void> }> => ({ close: async () => undefined });
  return {
    shards: queues.shards,
    shardOf: (session) => queues.shardOf(session),
    now: () => queues.now(),
    connected: () => !redis.away,
    enqueue: (turn) => call("queues.enqueue", () => queues.enqueue(turn)),
    wake: (session) => call("queues.wake", () => queues.wake(session)),
    promote: (session) => call("queues.promote", () => queues.promote(session)),
    peek: (session) => call("queues.peek", () => queues.peek(session)),
    settle: (session, jobIds) => call("queues.settle", () => queues.settle(session, jobIds)),
    jobId: (turnId, generation) => queues.jobId(turnId, generation),
    repair: (session, turns) => call("queues.repair", () => queues.repair(session, turns)),
    work: none as unknown as () => Promise<ActivationRunner>,
    inbox: {
      publish: (session, item) => call("inbox.publish", () => queues.inbox.publish(session, item)),
      remove: (session, ids) => call("inbox.remove", () => queues.inbox.remove(session, ids)),
      list: (session) => call("inbox.list", () => queues.inbox.list(session)),
    },
    letters: {
      put: (letter) => call("letters.put", () => queues.letters.put(letter)),
      remove: (session, turnId, generation) => call("letters.remove", () => queues.letters.remove(session, turnId, generation)),
      putRefused: (session, job) => call("letters.putRefused", () => queues.letters.putRefused(session, job)),
      list: (limit) => call("letters.list", () => queues.letters.list(limit)),
    },
    observations: { request: (bot, reason) => call("observations.request", () => queues.observations.request(bot, reason)), work: none },
    events: bus.of(process),
    onRestart: () => undefined,
    close: async () => undefined,
  };
}

/** A Memory Repository as one process sees it. */
export function repositoryOf(scheduler: Scheduler, process: Process, repository: MemoryRepository): MemoryRepository {
  const port = wrapped(scheduler, process, "memory", repository, () => "memory");
  return {
    persona: () => port.persona(),
    look: () => port.look(),
    blobNow: (path) => port.blobNow(path),
    blobOf: (path, bytes) => port.blobOf(path, bytes),
    files: wrapped(scheduler, process, "files", repository.files, () => "memory"),
  };
}
