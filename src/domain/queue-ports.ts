/** Redis: what is still to be done, as the actors and hosts see it. */
import type { BotName, SessionId, TurnId } from "./ids.ts";
import type { User } from "./messages.ts";
import type { StallSeen, Turn } from "./records.ts";

/** A turn as it lies in the turn queue: a hint and a cache, never the order. */
export interface QueuedTurn {
  /** What removes it. */
  jobId: string;
  turnId: TurnId;
  generation: number;
  /** Absent where another client than ours added it: it must be stored before it is run. */
  number?: number;
  bot: BotName;
  /** Absent where it was too large to lie inline. */
  input?: string;
  user?: User;
  deliverTo?: string;
  traceparent?: string;
}

/** A job of the turn queue that cannot be understood: it becomes a refused letter whole. */
export interface RefusedJob {
  jobId: string;
  refused: string;
  raw: string;
}

/** How an activation ended. */
export type ActivationEnd =
  /** Nothing to do. */
  | { kind: "idle" }
  /** More to do, but others first. */
  | { kind: "yield" }
  /** Not before `ms` have passed. */
  | { kind: "delay"; ms: number; reason: string }
  /** The worker goes away: the session is the next one's first. */
  | { kind: "handover" };

/** The right to run one session for a while. Only saves work: the log is the fence. */
export interface Lease {
  session: SessionId;
  /** Aborted when the lease is lost (`reason` is `lease_lost`) or the worker drains (`draining`). */
  signal: AbortSignal;
  /** How often this activation was taken over from a holder that vanished. `excused`: a Redis restart explains it. */
  stall: StallSeen & { excused: boolean };
  /** The first stay of this activation: no back-off, takeover or delay came before. */
  fresh: boolean;
}

export type ActivationHandler = (lease: Lease) => Promise<ActivationEnd>;

export interface ActivationRunner {
  /** Takes nothing new; aborts what still runs after `drainMs`; resolves when all have returned. */
  close(drainMs: number): Promise<void>;
}

export interface Queues {
  readonly shards: number;
  /** The shard a session belongs to. */
  shardOf(session: SessionId): number;
  /** Redis time in milliseconds, as well as it is known. */
  now(): number;
  /** False while Redis does not answer. */
  connected(): boolean;
  /** Turn first, activation second. Rejects with `queue_unavailable`; adding twice is harmless. */
  enqueue(turn: Turn): Promise<void>;
  /** Asks for an activation of the session. */
  wake(session: SessionId): Promise<void>;
  /** Wakes a session early that is delayed for a back-off. */
  promote(session: SessionId): Promise<void>;
  /** Up to `limits.peekMax` heads. The first of a fresh stay may know only the turn that woke it: `settle` answers the next. */
  peek(session: SessionId): Promise<(QueuedTurn | RefusedJob)[]>;
  /** Removes jobs that have an outcome, and the queue's last keys with them; answers the next heads. */
  settle(session: SessionId, jobIds: readonly string[]): Promise<(QueuedTurn | RefusedJob)[]>;
  /** The job id that a turn of ours has. */
  jobId(turnId: TurnId, generation: number): string;
  /** Adds what is missing of these open turns of one session, and its activation. Only adds. */
  repair(session: SessionId, turns: readonly Turn[]): Promise<{ turns: number; activations: number }>;
  /** Starts to run activations. */
  work(handler: ActivationHandler, options: { concurrency: number }): Promise<ActivationRunner>;
  inbox: InboxQueue;
  letters: LetterQueue;
  observations: ObservationQueue;
  events: Events;
  /** Called when Redis is back with another identity than before: whatever it held may be gone. */
  onRestart(listener: () => void): void;
  close(): Promise<void>;
}

export interface InboxItem {
  /** `notice`, or `note-N`. */
  id: string;
  text: string;
}

/** The outbox of notices and notes: wakes nobody (I9), twice is harmless. */
export interface InboxQueue {
  /** Adds or replaces the item of that id. */
  publish(session: SessionId, item: InboxItem): Promise<void>;
  /** Removes items by id, and the queue's last keys with them. */
  remove(session: SessionId, ids: readonly string[]): Promise<void>;
  list(session: SessionId): Promise<InboxItem[]>;
}

/** One dead letter as it lies in Redis, for tools that look there; the log is the truth. */
export interface Letter {
  session: SessionId;
  turnId: TurnId;
  generation: number;
  payload: unknown;
}

export interface LetterQueue {
  put(letter: Letter): Promise<void>;
  remove(session: SessionId, turnId: TurnId, generation: number): Promise<void>;
  /** A job that could not be understood: kept whole, under its own reason. */
  putRefused(session: SessionId, job: RefusedJob): Promise<void>;
  list(limit: number): Promise<unknown[]>;
}

export interface ObservationQueue {
  /** Asks for a look; asking again while one waits is one look. */
  request(bot: BotName, reason: string): Promise<void>;
  work(bots: readonly BotName[], handler: (bot: BotName, reason: string) => Promise<void>): Promise<{ close(): Promise<void> }>;
}

/** What hosts hear. Lossy by design: a waiter reads MongoDB too. */
export interface TurnEvent {
  session: SessionId;
  /** The log's seq at that time: clients drop what is not newer. */
  seq: number;
  type:
    | "turn.queued"
    | "turn.started"
    | "turn.retrying"
    | "message.delta"
    | "tool.started"
    | "tool.finished"
    | "notice.told"
    | "turn.heartbeat"
    | "turn.done"
    | "turn.dead"
    | "turn.cancelled";
  turnId: TurnId;
  generation: number;
  data: Record<string, unknown>;
}

export interface Events {
  /** Never rejects: an event that cannot be published is dropped. */
  publish(event: TurnEvent): void;
  /** Resolves when the subscription stands. `onReconnect` asks the listener to read the truth again. */
  subscribe(session: SessionId, listener: (event: TurnEvent) => void, onReconnect: () => void): Promise<() => Promise<void>>;
  /** To whoever holds the session: look at the log and at the cancel mark. */
  signal(session: SessionId): void;
  onSignal(listener: (session: SessionId) => void): Promise<() => Promise<void>>;
}
