/**
 * The few things the store does with a collection, each on one document, with errors translated and every document
 * checked. Point reads and writes that come at the same time share commands (batches.ts). The database handed in asks for majority reads on the primary and majority writes (rule 3).
 */
import { BSON, type Filter, type Sort, type UpdateFilter } from "mongodb";
import { HeadfastError, isHeadfastError } from "../domain/errors.ts";
import { limits } from "../domain/limits.ts";
import type { Inserted, Logger, System } from "../domain/ports.ts";
import { recordVersion } from "../domain/records.ts";
import { Batches } from "./batches.ts";
import { type DriverCollection, type PointRead, readAll, type Write, writeAll } from "./commands.ts";
import { isDuplicateKey, storeError } from "./errors.ts";
import { changesOf, decodeFields, encodeFields, type Fields, Mismatch, type Stored } from "./mapping.ts";

/** Which document: `session` routes the call where the collection is sharded by it, and is left out elsewhere. */
export interface Key {
  _id: string;
  session?: string;
}

/** One collection and how its records are stored. */
export interface Shape<T extends object> {
  collection: string;
  fields: Fields<T>;
  keyOf(record: T): Key;
}

export interface Surroundings {
  log: Logger;
  system: System;
  /** Behind a mongos, where a session routes a call. */
  sharded: boolean;
}

export type Change<T> = { [K in keyof T]?: T[K] | undefined };
/** Update operators, e.g. `$set`. */
export type Update = { [operator: `$${string}`]: object };

export class Documents<T extends object> {
  readonly #collection: DriverCollection;
  readonly #shape: Shape<T>;
  readonly #around: Surroundings;
  readonly #inserts: Batches<Write, void>;
  readonly #updates: Batches<Write, void>;
  readonly #reads: Batches<PointRead, Stored | null>;

  constructor(collection: DriverCollection, shape: Shape<T>, around: Surroundings) {
    this.#collection = collection;
    this.#shape = shape;
    this.#around = around;
    const { monotonic } = around.system;
    this.#inserts = new Batches((writes) => writeAll(collection, writes), monotonic, limits.storeBatchMax);
    this.#updates = new Batches((writes) => writeAll(collection, writes), monotonic, limits.storeBatchMax);
    this.#reads = new Batches((reads) => readAll(collection, reads), monotonic, limits.storeReadsMax);
  }

  /** The document of a record. @throws `invalid_id`, `document_invalid` and `input_too_large` before anything is sent. */
  encode(record: T): Stored {
    return this.#measured(record).document;
  }

  #measured(record: T): { document: Stored; bytes: number } {
    const { _id } = this.#shape.keyOf(record);
    const document = { _id, ...this.#valid(_id, () => encodeFields(this.#shape.fields, record)) };
    const bytes = BSON.calculateObjectSize(document);
    if (bytes <= limits.documentBytesMax) return { document, bytes };
    throw new HeadfastError(
      "input_too_large",
      `${this.#shape.collection}: a document of ${bytes} bytes, MongoDB takes ${limits.documentBytesMax}`,
    );
  }

  /** `$set` and `$unset` of a partial record. */
  changes(change: Change<T>): Update {
    return this.#valid("", () => changesOf(this.#shape.fields, change)) as Update;
  }

  async insert(record: T): Promise<Inserted> {
    const { document, bytes } = this.#measured(record);
    return this.#call("insert", async () => {
      try {
        await this.#inserts.add({ insertOne: { document } }, bytes);
        return "inserted";
      } catch (error) {
        if (isDuplicateKey(error)) return "duplicate";
        throw error;
      }
    });
  }

  /** @throws `document_invalid` or `version_ahead`, naming collection, `_id` and field. */
  async get(key: Key): Promise<T | undefined> {
    const document = await this.#read(key);
    return document === null ? undefined : this.decode(document);
  }

  async #read({ _id, session }: Key): Promise<Stored | null> {
    const routed = this.#around.sharded ? session : undefined;
    const read: PointRead = { _id, filter: this.#filter({ _id, session }), session: routed };
    const document = await this.#call("find", () => this.#reads.add(read, 0));
    // An answer that is not the document asked for is not taken for one, whatever a driver wraps it in.
    if (document !== null && document._id !== _id) throw this.broken(_id, "_id must be the one asked for");
    return document;
  }

  /** By equality on the fields of a unique index, and nothing else. */
  async one(filter: Filter<Stored>): Promise<T | undefined> {
    const document = await this.#call("find", () => this.#collection.findOne(filter));
    return document === null || document === undefined ? undefined : this.decode(document);
  }

  async exists(key: Key): Promise<boolean> {
    const found = await this.#call("find", () => this.#collection.findOne(this.#filter(key), { projection: { _id: 1 } }));
    return found?._id === key._id;
  }

  /**
   * Those under `keyAt(0)`, `keyAt(1)` … in order, up to the first that is not there or to `count` of them. Point reads:
   * no sort, no range. A few are asked for first, then ever more: most callers look whether there is anything at all.
   */
  async dense(keyAt: (n: number) => Key, count: number): Promise<T[]> {
    const found: T[] = [];
    for (let size: number = limits.storeReadAheadMin; found.length < count; size = Math.min(size * 4, limits.logBatchMax)) {
      const asked = Math.min(size, count - found.length);
      const from = found.length;
      const documents = await Promise.all(Array.from({ length: asked }, (_, n) => this.#read(keyAt(from + n))));
      const hole = documents.indexOf(null);
      found.push(...(documents.slice(0, hole === -1 ? asked : hole) as Stored[]).map((document) => this.decode(document)));
      if (hole !== -1) break;
    }
    return found;
  }

  /** Changes one document where the guard holds; else nothing. */
  async update(key: Key, guard: Filter<Stored>, change: Update): Promise<void> {
    await this.#call("update", () => this.#change(key, guard, change, false));
  }

  /** Unordered: each is an update of one document, and all are tried before one's error is thrown. */
  async updateAll(updates: readonly { key: Key; guard: Filter<Stored>; change: Update }[]): Promise<void> {
    const ends = await Promise.allSettled(updates.map(({ key, guard, change }) => this.update(key, guard, change)));
    for (const end of ends) if (end.status === "rejected") throw end.reason;
  }

  #change(key: Key, guard: Filter<Stored>, change: Update, upsert: boolean): Promise<void> {
    const updateOne = { filter: { ...guard, ...this.#filter(key) }, update: change as UpdateFilter<Stored>, upsert };
    return this.#updates.add({ updateOne }, BSON.calculateObjectSize(change));
  }

  /**
   * Upserts where the guard holds or nothing stands, and resolves with what a majority has afterwards, whoever wrote it.
   * The write's answer decides nothing: neither its shape, nor a null, nor an image of before; the read does (rule 3).
   */
  async standing(key: Key, guard: Filter<Stored>, change: Update): Promise<T> {
    for (let tries = 0; tries < limits.raceTriesMax; tries += 1) {
      await this.#upsert(key, guard, change);
      const stands = await this.get(key);
      if (stands !== undefined) return stands;
      await this.#around.system.sleep(limits.storePauseMs);
    }
    throw new HeadfastError(
      "store_unavailable",
      `${this.#shape.collection} ${key._id}: what collided was gone ${limits.raceTriesMax} times`,
    );
  }

  async #upsert(key: Key, guard: Filter<Stored>, change: Update): Promise<void> {
    await this.#call("upsert", async () => {
      try {
        await this.#change(key, guard, change, true);
      } catch (error) {
        if (!isDuplicateKey(error)) throw error;
      }
    });
  }

  async find(filter: Filter<Stored>, sort: Sort, limit: number): Promise<Stored[]> {
    return this.#call("find", () => this.#collection.find(filter, { sort, limit }).toArray());
  }

  /** For listings: one document that cannot be read is logged and left out, so that it does not hide all others. */
  decodeReadable(documents: readonly Stored[]): T[] {
    return documents.flatMap((document) => {
      try {
        return [this.decode(document)];
      } catch (error) {
        if (!isHeadfastError(error, "document_invalid", "version_ahead")) throw error;
        this.#around.log.error({ code: error.code, ...error.data }, error.message);
        return [];
      }
    });
  }

  decode(document: Stored): T {
    const { v, _id } = document;
    if (typeof v === "number" && v > recordVersion) {
      throw new HeadfastError(
        "version_ahead",
        `${this.#shape.collection} ${_id} has version ${v}, this release knows ${recordVersion}; upgrade this worker`,
        { data: { collection: this.#shape.collection, _id } },
      );
    }
    const record = this.#valid(_id, () => decodeFields(this.#shape.fields, document));
    if (this.#shape.keyOf(record)._id !== _id) throw this.broken(_id, "_id must agree with the other fields");
    return record;
  }

  #filter({ _id, session }: { _id: string; session?: string | undefined }): Filter<Stored> {
    return this.#around.sharded && session !== undefined ? { _id, session } : { _id };
  }

  #valid<R>(_id: string, work: () => R): R {
    try {
      return work();
    } catch (error) {
      if (error instanceof Mismatch) throw this.broken(_id, error.message, error);
      throw error;
    }
  }

  /** The error for a document that is not what a release wrote; `what` begins with the field. */
  broken(_id: string, what: string, cause?: unknown): HeadfastError {
    const [field] = what.split(" ");
    return new HeadfastError("document_invalid", `${this.#shape.collection} ${_id}: ${what}`, {
      data: { collection: this.#shape.collection, _id, field },
      cause,
    });
  }

  async #call<R>(what: "find" | "insert" | "update" | "upsert", work: () => Promise<R>): Promise<R> {
    try {
      return await work();
    } catch (error) {
      throw storeError(error, `${what} in ${this.#shape.collection}`, what !== "find");
    }
  }
}
