/** A test's own part of a Redis. */
import type { Redis } from "ioredis";

/** Every key of a namespace, of all its shards. */
export async function keysOf(client: Redis, namespace: string): Promise<string[]> {
  const found: string[] = [];
  for (let cursor = "0"; ; ) {
    const [next, keys] = await client.scan(cursor, "MATCH", `{${namespace}:*}*`, "COUNT", 1_000);
    found.push(...keys);
    if (next === "0") return found.sort();
    cursor = next;
  }
}
