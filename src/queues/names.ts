/**
 * Every name that Headfast uses in Redis, and the one encoding of ids. Part of the wire contract: other clients build
 * the same names (docs/wire-contract.md).
 */
import { createHash } from "node:crypto";
import type { BotName, SessionId, TurnId } from "../domain/ids.ts";

/**
 * `~` and the id with every byte of its UTF-8 form but A-Z, a-z, 0-9, `-`, `_` and `.` as `%XX`. Never empty, never an
 * integer, without a colon, a brace or a glob character; two different well-formed ids never give the same text, and a
 * further `~` separates.
 */
export function encodeId(id: string): string {
  return `~${encodeURIComponent(id).replace(/[!'()*~]/gu, percent)}`;
}

/** The id that `encodeId` made this text from. */
export function decodeId(text: string): string {
  return decodeURIComponent(text.slice(1));
}

/** The job id of a turn: its encoded id, `~` and its generation. */
export function turnJobId(turnId: TurnId, generation: number): string {
  return `${encodeId(turnId)}~${generation}`;
}

/**
 * The shard of a session: the first 32 bits (big endian) of the SHA-1 of its UTF-8 form, modulo the number of shards.
 * Stored turns carry the shard: this never changes.
 */
export function shardOf(session: SessionId, shards: number): number {
  return shards === 1 ? 0 : createHash("sha1").update(session).digest().readUInt32BE(0) % shards;
}

/** BullMQ's prefix of a shard. The hash tag keeps all keys of a shard in one slot of a Redis Cluster. */
export function shardPrefix(namespace: string, shard: number): string {
  return `{${namespace}:${shard}}`;
}

export const activationsQueue = "activations";
export const observationsQueue = "observations";
export const deadLettersQueue = "dead-letters";

export function turnsQueue(session: SessionId): string {
  return `turns${encodeId(session)}`;
}

export function inboxQueue(session: SessionId): string {
  return `inbox${encodeId(session)}`;
}

export function letterJobId(session: SessionId, turnId: TurnId, generation: number): string {
  return `letter${encodeId(session)}${turnJobId(turnId, generation)}`;
}

/** A job that was refused keeps its own id, which another client chose. */
export function refusedJobId(session: SessionId, jobId: string): string {
  return `refused${encodeId(session)}${encodeId(jobId)}`;
}

export function observationId(bot: BotName): string {
  return encodeId(bot);
}

/** Pub/sub channel of a session's events. */
export function eventsChannel(namespace: string, session: SessionId): string {
  return `${namespace}:events${encodeId(session)}`;
}

/** Pub/sub channel on which holders are told to look at their log. */
export function signalsChannel(namespace: string): string {
  return `${namespace}:signals`;
}

function percent(char: string): string {
  return `%${char.charCodeAt(0).toString(16).toUpperCase()}`;
}
