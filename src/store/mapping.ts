/**
 * How a record becomes a document and back, declared once per collection. A document may have been edited by hand, so
 * each field is checked on the way back; a field that cannot be right is named, never guessed at. `undefined` and
 * `null` are stored as absence, so that no unique or sparse index ever meets a null.
 */
import { HeadfastError } from "../domain/errors.ts";
import { checkId } from "../domain/ids.ts";

/** A document as the driver knows it. */
export interface Stored {
  _id: string;
  [field: string]: unknown;
}

/** One field's two directions. `encode` gives undefined for what is not stored. Both throw `Mismatch`. */
export interface Codec<T> {
  encode(value: T): unknown;
  decode(stored: unknown): T;
}

/** A value that the field cannot have, in words; the mapping adds where. */
export class Mismatch extends Error {}

function mismatch(wanted: string, got: unknown): Mismatch {
  const kind = got === null ? "null" : Array.isArray(got) ? "an array" : typeof got === "string" ? "other text" : typeof got;
  return new Mismatch(`must be ${wanted}, is ${got === undefined ? "missing" : kind}`);
}

function checked<T>(wanted: string, holds: (value: unknown) => boolean): Codec<T> {
  const check = (value: unknown): T => {
    if (!holds(value)) throw mismatch(wanted, value);
    return value as T;
  };
  return { encode: check, decode: check };
}

/** Well-formed text, since the driver would replace anything else without a word. */
export const text: Codec<string> = checked("well-formed text", (value) => typeof value === "string" && value.isWellFormed());
export const whole: Codec<number> = checked("a whole number", Number.isSafeInteger);
export const finite: Codec<number> = checked("a number", Number.isFinite);
export const flag: Codec<boolean> = checked("true or false", (value) => typeof value === "boolean");

/** An id from a host: refused before any write where it is not one. */
export function id(field: string): Codec<string> {
  return { encode: (value) => checkId(field, value), decode: text.decode };
}

export function oneOf<T extends string>(...values: T[]): Codec<T> {
  return checked(`one of ${values.join(", ")}`, (value) => values.includes(value as T));
}

/** Absent = undefined. A stored null is an error: it never meant "missing". */
export function optional<T>(codec: Codec<T>): Codec<T | undefined> {
  return {
    encode: (value) => (value === undefined ? undefined : codec.encode(value)),
    decode: (stored) => (stored === undefined ? undefined : codec.decode(stored)),
  };
}

/** Absent = null. */
export function nullable<T>(codec: Codec<T>): Codec<T | null> {
  return {
    encode: (value) => (value === null ? undefined : codec.encode(value)),
    decode: (stored) => (stored === undefined || stored === null ? null : codec.decode(stored)),
  };
}

/** In an array null keeps its place. */
export function listOf<T>(codec: Codec<T>): Codec<T[]> {
  const each = (change: (item: never) => unknown) => (values: unknown) => {
    if (!Array.isArray(values)) throw mismatch("an array", values);
    return values.map((value) => change(value as never) ?? null) as T[];
  };
  return { encode: each(codec.encode), decode: each(codec.decode) };
}

export function rangeOf(codec: Codec<number>): Codec<[number, number]> {
  const list = listOf(codec);
  return {
    encode: (value) => list.encode(value),
    decode(stored) {
      const [from, to, ...more] = list.decode(stored);
      if (from === undefined || to === undefined || more.length > 0) throw new Mismatch("must be two numbers");
      return [from, to];
    },
  };
}

/** As one JSON text: keys that BSON would not take (`$`, dots, NUL) and any nesting go in and come out unchanged. */
export function json<T>(wanted: string, holds: (value: unknown) => boolean): Codec<T> {
  const codec = checked<T>(wanted, holds);
  return {
    encode: (value) => JSON.stringify(codec.encode(value)),
    decode: (stored) => codec.decode(parse(text.decode(stored))),
  };
}

function parse(stored: string): unknown {
  try {
    return JSON.parse(stored);
  } catch {
    throw new Mismatch("must be JSON text");
  }
}

/** The document's name and the codec of each field of the record; none can be forgotten. */
export type Fields<T> = { readonly [K in keyof T]-?: readonly [name: string, codec: Codec<T[K]>] };

/** A nested record. */
export function object<T extends object>(fields: Fields<T>): Codec<T> {
  return {
    encode: (value) => encodeFields(fields, value),
    decode(stored) {
      if (typeof stored !== "object" || stored === null || Array.isArray(stored)) throw mismatch("an object", stored);
      return decodeFields(fields, stored as Record<string, unknown>);
    },
  };
}

/** @throws {Mismatch} that names the field by its path. */
export function encodeFields<T extends object>(fields: Fields<T>, value: { [K in keyof T]?: T[K] | undefined }): Record<string, unknown> {
  const document: Record<string, unknown> = {};
  for (const key of keysOf(fields)) {
    const [name, codec] = fields[key];
    const stored = named(name, () => codec.encode(value[key] as T[typeof key]));
    if (stored !== undefined) document[name] = stored;
  }
  return document;
}

/** @throws {Mismatch} that names the field by its path. */
export function decodeFields<T extends object>(fields: Fields<T>, document: Record<string, unknown>): T {
  const value: Partial<T> = {};
  for (const key of keysOf(fields)) {
    const [name, codec] = fields[key];
    const decoded = named(name, () => codec.decode(document[name]));
    if (decoded !== undefined) value[key] = decoded;
  }
  return value as T;
}

/** `$set` and `$unset` of the fields given; null and undefined are taken off. */
export function changesOf<T extends object>(
  fields: Fields<T>,
  change: { [K in keyof T]?: T[K] | undefined },
): { $set?: Record<string, unknown>; $unset?: Record<string, ""> } {
  const set: Record<string, unknown> = {};
  const unset: Record<string, ""> = {};
  for (const key of Object.keys(change) as (keyof T)[]) {
    const [name, codec] = fields[key];
    const stored = named(name, () => codec.encode(change[key] as T[typeof key]));
    if (stored === undefined) unset[name] = "";
    else set[name] = stored;
  }
  return { ...(Object.keys(set).length > 0 && { $set: set }), ...(Object.keys(unset).length > 0 && { $unset: unset }) };
}

function keysOf<T extends object>(fields: Fields<T>): (keyof T)[] {
  return Object.keys(fields) as (keyof T)[];
}

function named<T>(name: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof HeadfastError || !(error instanceof Mismatch)) throw error;
    throw new Mismatch(error.message.startsWith("must ") ? `${name} ${error.message}` : `${name}.${error.message}`);
  }
}
