/** What claims are checked with: questions to MongoDB and Redis themselves, through their own drivers, kept as text. */
import type { Redis } from "ioredis";
import type { Collection, Db, Filter, Sort } from "mongodb";

/** A question as one would type it into mongosh or redis-cli, and its answer. */
export interface Asked<T> {
  query: string;
  result: T;
}

/** Any document of Headfast: its `_id` is text. */
interface Stored {
  _id: string;
  [field: string]: unknown;
}

export class Evidence {
  readonly #db: Db;
  readonly #redis: Redis;

  constructor(db: Db, redis: Redis) {
    this.#db = db;
    this.#redis = redis;
  }

  async find<T extends object>(
    collection: string,
    filter: Filter<Stored>,
    fields: readonly string[],
    sort: Sort = { seq: 1 },
  ): Promise<Asked<T[]>> {
    const projection = Object.fromEntries(fields.map((field) => [field, 1]));
    const result = await this.#of(collection).find(filter, { projection, sort }).toArray();
    const sorted = Object.keys(sort).length === 0 ? "" : `.sort(${text(sort)})`;
    return { query: `db.${collection}.find(${text(filter)}, ${text(projection)})${sorted}`, result: result as unknown as T[] };
  }

  async count(collection: string, filter: Filter<Stored>): Promise<Asked<number>> {
    return { query: `db.${collection}.countDocuments(${text(filter)})`, result: await this.#of(collection).countDocuments(filter) };
  }

  async distinct(collection: string, field: string, filter: Filter<Stored>): Promise<Asked<string[]>> {
    const result = await this.#of(collection).distinct(field, filter);
    return { query: `db.${collection}.distinct(${text(field)}, ${text(filter)})`, result: result.map(String) };
  }

  /** The lists of a pattern, and how long each is. */
  async lengths(pattern: string): Promise<Asked<ReadonlyMap<string, number>>> {
    const { query, result } = await this.keys(pattern);
    const lengths = await Promise.all(result.map(async (key) => [key, await this.#redis.llen(key)] as const));
    return { query: `${query}, LLEN of each`, result: new Map(lengths) };
  }

  #of(collection: string): Collection<Stored> {
    return this.#db.collection<Stored>(collection);
  }

  /** The keys of a pattern. The command is KEYS as text; it is asked in steps, so that no server stands still for it. */
  async keys(pattern: string): Promise<Asked<string[]>> {
    const found = new Set<string>();
    let cursor = "0";
    do {
      const [next, page] = await this.#redis.scan(cursor, "MATCH", pattern, "COUNT", 500);
      for (const key of page) found.add(key);
      cursor = next;
    } while (cursor !== "0");
    return { query: `KEYS ${pattern}`, result: [...found].sort() };
  }
}

function text(value: unknown): string {
  return JSON.stringify(value);
}
