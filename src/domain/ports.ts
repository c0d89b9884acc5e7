/**
 * What the actors see of the world: a handful of functions each, never a driver. Every port has one conformance suite
 * that the in-memory and the real adapter pass. All reads that are acted on are majority reads on the primary; every
 * write is acknowledged by a majority before its promise resolves. A promise that rejects with `store_unavailable`
 * says nothing of whether the write was applied.
 */
import type { SessionId } from "./ids.ts";
import type { Store } from "./store-ports.ts";

export type * from "./bot-ports.ts";
export type * from "./queue-ports.ts";
export type * from "./store-ports.ts";

/** Time and chance, whole. */
export interface System {
  /** Wall clock in milliseconds since 1970. For people; nothing is ordered by it. */
  now(): number;
  /** Milliseconds that only grow. */
  monotonic(): number;
  /** Resolves after `ms`, or at once when the signal aborts. Never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  id(): string;
  /** In [0, 1). */
  random(): number;
}

/** What every operation on turns and logs needs. */
export interface Ledger {
  store: Store;
  system: System;
  /** This process, as entries and attempts name it. */
  worker: string;
  shardOf(session: SessionId): number;
}

/** Structured, redacted by the caller's logger; a message never holds prompt text. */
export interface Logger {
  debug(data: Record<string, unknown>, message: string): void;
  info(data: Record<string, unknown>, message: string): void;
  warn(data: Record<string, unknown>, message: string): void;
  error(data: Record<string, unknown>, message: string): void;
}
