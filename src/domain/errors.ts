/**
 * The closed set of errors. Each has a literal `code`; `kind` says what a turn does with it:
 * - `terminal`: trying again gives the same answer; the turn is dead or the call is refused.
 * - `retry`:    an attempt was spent; another may succeed.
 * - `later`:    an outage or a "come back later"; no attempt is spent (I12).
 * A driver's error becomes one of these in one function per adapter, by code, with the original as `cause`.
 */
import { limits } from "./limits.ts";

export type ErrorKind = "terminal" | "retry" | "later";

const kinds = {
  invalid_input: "terminal",
  invalid_id: "terminal",
  input_too_large: "terminal",
  session_not_found: "terminal",
  turn_not_found: "terminal",
  dead_letter_not_found: "terminal",
  bot_not_found: "terminal",
  ownership_conflict: "terminal",
  turn_id_reused: "terminal",
  /** A stored document is not what this release wrote: says which document and which field. */
  document_invalid: "terminal",
  /** A document or payload of a newer release. Never guessed at: the activation waits. */
  version_ahead: "later",
  /** The outgoing bytes differ from the recorded ones: never sent (I2). */
  prefix_drift: "terminal",
  /** The prefix was rendered for another provider's wire format. */
  dialect_differs: "terminal",
  store_unavailable: "later",
  queue_unavailable: "later",
  /** A look at the Memory Repository, or reading PERSONA.md, failed: not the same as empty or absent. */
  memory_unreadable: "later",
  model_refused: "terminal",
  model_failed: "retry",
  model_timeout: "retry",
  model_later: "later",
  tool_failed: "retry",
  steps_exceeded: "terminal",
  reply_too_large: "terminal",
  crash_limit: "terminal",
  /** The turn's owner changed while it ran with recorded steps; its next generation runs under the new one. */
  reowned: "terminal",
  lease_lost: "later",
  draining: "later",
  configuration: "terminal",
  shards_differ: "terminal",
  index_missing: "terminal",
  eviction_policy: "terminal",
  clock_skew: "terminal",
  services_missing: "terminal",
  wait_timeout: "terminal",
  closed: "terminal",
  unexpected: "retry",
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof kinds;

/** A plain description of an error as it is stored with an attempt or a dead letter. */
export interface Cause {
  code: string;
  message: string;
  stack?: string;
}

export interface ErrorOptions {
  data?: Record<string, unknown>;
  cause?: unknown;
  retryAfterMs?: number;
  /** Overrides the code's own kind, e.g. a provider's error that is known to be final. */
  kind?: ErrorKind;
}

/** The same in every copy of this package that one process may load. */
const brand = Symbol.for("headfast.error");

/** Every error that Headfast throws on purpose. `message` says what is wrong, where, and what to do. */
export class HeadfastError extends Error {
  readonly [brand] = true;
  readonly code: ErrorCode;
  readonly kind: ErrorKind;
  readonly data: Record<string, unknown>;
  readonly retryAfterMs: number | undefined;

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "HeadfastError";
    this.code = code;
    this.kind = options.kind ?? kinds[code];
    this.data = options.data ?? {};
    this.retryAfterMs = options.retryAfterMs;
  }

  /** By brand, not by class: a bot's configuration may have loaded another copy of this package. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === "object" && value !== null && (value as { [brand]?: unknown })[brand] === true;
  }

  /** True where the same call may succeed if it is made again. */
  get retryable(): boolean {
    return this.kind !== "terminal";
  }

  toJSON(): Record<string, unknown> {
    return {
      code: this.code,
      message: this.message,
      retryable: this.retryable,
      ...(this.retryAfterMs === undefined ? {} : { retry_after_ms: this.retryAfterMs }),
      ...(Object.keys(this.data).length === 0 ? {} : { data: this.data }),
    };
  }
}

/** The difference that refuses a call: which part of the cached sequence, and its first differing byte. */
export class PrefixDriftError extends HeadfastError {
  static override [Symbol.hasInstance](value: unknown): boolean {
    return value instanceof HeadfastError && value.code === "prefix_drift";
  }

  constructor(part: "tools" | "system" | "messages" | "length", byte: number, detail: string) {
    super(
      "prefix_drift",
      `the outgoing ${part} differ from what was recorded, first at byte ${byte} of the cached sequence: ${detail}; the call was not sent. A fork at the last good step is the way on.`,
      {
        data: { part, byte },
      },
    );
    this.name = "PrefixDriftError";
  }
}

export function isHeadfastError(error: unknown, ...codes: ErrorCode[]): error is HeadfastError {
  return error instanceof HeadfastError && (codes.length === 0 || codes.includes(error.code));
}

/** Anything thrown, as one of ours: what is not ours is a bug or a user's code, and counts as an attempt. */
export function asHeadfastError(error: unknown): HeadfastError {
  if (error instanceof HeadfastError) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new HeadfastError("unexpected", message, { cause: error });
}

/** The stored description of an error, with the stack of its root cause, bounded. */
export function causeOf(error: unknown): Cause {
  const ours = asHeadfastError(error);
  const root = rootOf(ours);
  const stack = root instanceof Error ? root.stack : undefined;
  return {
    code: ours.code,
    message: cutText(ours.message, limits.errorBytesMax),
    ...(stack === undefined ? {} : { stack: cutText(stack, limits.errorBytesMax) }),
  };
}

function rootOf(error: Error): unknown {
  let root: unknown = error;
  for (let depth = 0; depth < 10 && root instanceof Error && root.cause !== undefined; depth += 1) root = root.cause;
  return root;
}

function cutText(text: string, bytesMax: number): string {
  if (Buffer.byteLength(text) <= bytesMax) return text;
  const cut = Buffer.from(text)
    .subarray(0, bytesMax - 4)
    .toString("utf8");
  return `${cut.replace(/\uFFFD+$/u, "")}…`;
}
