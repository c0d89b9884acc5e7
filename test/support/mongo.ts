/** Databases of tests: opened, looked into and dropped with a client of their own. */
import { type Db, MongoClient } from "mongodb";
import type { Logger } from "../../src/domain/ports.ts";
import { mongoUrl } from "./services.ts";

/** A logger for tests that do not ask what was logged. */
export const silent: Logger = { debug() {}, info() {}, warn() {}, error() {} };

/** Runs `work` on the database, past the store, and closes the connection. */
export async function inDatabase<T>(database: string, work: (db: Db) => Promise<T>): Promise<T> {
  const client = new MongoClient(mongoUrl());
  try {
    return await work(client.db(database));
  } finally {
    await client.close();
  }
}

export async function dropDatabase(database: string): Promise<void> {
  await inDatabase(database, (db) => db.dropDatabase());
}
