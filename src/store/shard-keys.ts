/**
 * Behind a mongos a unique index holds only within a shard, so all documents of a session must lie on one: what is
 * numbered within a session is sharded by `session`, the rest by `_id` (rule 16).
 */
import type { MongoClient } from "mongodb";
import { HeadfastError } from "../domain/errors.ts";
import { commandNotFound, storeError } from "./errors.ts";

const bySession = ["turns", "transcript", "notes"];
const byId = ["session_ownership", "memory_observation", "memory_states", "prefix_parts", "settings", "write_journal"];

/** The shard key of a collection, null where it is not sharded. */
export type ShardKeyOf = (collection: string) => Promise<Record<string, unknown> | null>;

/** @throws `configuration` naming the collection and the key it needs. */
export async function checkShardKeys(shardKeyOf: ShardKeyOf): Promise<void> {
  for (const collection of [...bySession, ...byId]) {
    const key = await shardKeyOf(collection);
    if (key === null) continue;
    const field = bySession.includes(collection) ? "session" : "_id";
    const right = Object.keys(key).join() === field && (key[field] === 1 || (field === "_id" && key[field] === "hashed"));
    if (right) continue;
    throw new HeadfastError(
      "configuration",
      `collection ${collection} is sharded by ${JSON.stringify(key)}; the protocol needs { ${field}: 1 }, or none`,
      { data: { collection } },
    );
  }
}

/** Whether the client speaks to a mongos; a server without `hello` is none. */
export async function isMongos(client: MongoClient): Promise<boolean> {
  try {
    const hello = await client.db("admin").command({ hello: 1 });
    return hello.msg === "isdbgrid";
  } catch (error) {
    if (typeof error === "object" && error !== null && "code" in error && error.code === commandNotFound) return false;
    throw storeError(error, "hello");
  }
}

/** As the cluster's own configuration has it. */
export function shardKeysOf(client: MongoClient, database: string): ShardKeyOf {
  return async (collection) => {
    try {
      const found = await client
        .db("config")
        .collection<{ _id: string; key?: Record<string, unknown> }>("collections")
        .findOne({ _id: `${database}.${collection}` });
      return found?.key ?? null;
    } catch (error) {
      throw storeError(error, `reading the shard key of ${collection}`);
    }
  };
}
