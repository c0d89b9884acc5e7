/**
 * Ids come from hosts and contain anything: `slack:C024:1712.55`, `-100123`, spaces, `日本`, a newline, `__proto__`.
 * Any non-empty well-formed string up to `limits.idBytesMax` bytes stays distinct; all else is refused by name.
 */
import { HeadfastError } from "./errors.ts";
import { limits } from "./limits.ts";

export type SessionId = string;
export type TurnId = string;
export type BotName = string;

/** Returns the id unchanged. @throws {HeadfastError} `invalid_id` naming the field and the reason. */
export function checkId(field: string, value: unknown, bytesMax: number = limits.idBytesMax): string {
  if (typeof value !== "string") throw refused(field, `must be a string, got ${kindOf(value)}`);
  if (value.length === 0) throw refused(field, "must not be empty");
  // Made well-formed, two different ids could become one: so an id, unlike a text, is refused.
  if (!value.isWellFormed()) throw refused(field, "holds a lone surrogate, which no store keeps as it is");
  const bytes = Buffer.byteLength(value);
  if (bytes > bytesMax) throw refused(field, `has ${bytes} bytes, the limit is ${bytesMax}`);
  return value;
}

/** The names of bots stand in file names and metrics. @throws {HeadfastError} `invalid_id` */
export function checkBotName(value: unknown): BotName {
  return checkId("bot", value, limits.botNameBytesMax);
}

/** A turn of one generation, as text that is equal only for equal pairs: the number stands last. */
export function turnKey(turnId: TurnId, generation: number): string {
  return `${turnId}#${generation}`;
}

/** The id of a document that is the n-th of its session: unambiguous, since the number stands last. */
export function numberedId(session: SessionId, number: number): string {
  return `${session}#${number}`;
}

function refused(field: string, reason: string): HeadfastError {
  return new HeadfastError("invalid_id", `${field} ${reason}`, { data: { field } });
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "an array" : typeof value;
}
