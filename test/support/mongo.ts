/** Stores and databases of tests: opened, looked into and dropped with a client of their own. */
import { type Db, MongoClient, type MongoClientOptions } from "mongodb";
import type { Logger } from "../../src/domain/ports.ts";
import { clientOptions, type MongoStore, type MongoStoreOptions, openMongoStore } from "../../src/store/store.ts";
import { realSystem } from "../../src/system.ts";
import { mongoUrl, uniqueName } from "./services.ts";

/** A logger for tests that do not ask what was logged. */
export const silent: Logger = { debug() {}, info() {}, warn() {}, error() {} };

/** A logger that keeps what it was told. */
export function recorder(): { log: Logger; lines: { level: string; data: Record<string, unknown> }[] } {
  const lines: { level: string; data: Record<string, unknown> }[] = [];
  const at = (level: string) => (data: Record<string, unknown>) => void lines.push({ level, data });
  return { log: { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") }, lines };
}

/** Runs `work` on a store that is closed afterwards; its database is dropped then, unless it was named. */
export async function opened<T>(
  options: Partial<MongoStoreOptions>,
  work: (store: MongoStore, database: string) => Promise<T>,
): Promise<T> {
  const database = options.database ?? uniqueName("store");
  const from = options.client === undefined ? { url: mongoUrl() } : {};
  const store = await openMongoStore({ ...from, system: realSystem, log: silent, ...options, database });
  try {
    return await work(store, database);
  } finally {
    await store.close();
    if (options.database === undefined) await dropDatabase(database);
  }
}

/** Runs `work` with a client that connects as ours do, and closes it. */
export async function withClient<T>(url: string, options: MongoClientOptions, work: (client: MongoClient) => Promise<T>): Promise<T> {
  const client = new MongoClient(url, { ...clientOptions, ...options });
  try {
    return await work(client);
  } finally {
    await client.close();
  }
}

/** Runs `work` on the database, past the store, and closes the connection. */
export async function inDatabase<T>(database: string, work: (db: Db) => Promise<T>): Promise<T> {
  return withClient(mongoUrl(), {}, (client) => work(client.db(database)));
}

export async function dropDatabase(database: string): Promise<void> {
  await inDatabase(database, (db) => db.dropDatabase());
}
