/** The store in MongoDB: one client, one database, nine collections, each behind its port. */
import { type Db, MongoClient, type MongoClientOptions, ReadConcern } from "mongodb";
import { HeadfastError } from "../domain/errors.ts";
import { limits } from "../domain/limits.ts";
import type { Logger, Store, System } from "../domain/ports.ts";
import { Documents, type Shape, type Surroundings } from "./documents.ts";
import { storeError } from "./errors.ts";
import { ensureIndexes, type IndexProblem, missingIndexes, problemOf } from "./indexes.ts";
import type { Stored } from "./mapping.ts";
import { noteStore, notesShape } from "./notes.ts";
import { observationShape, observationStore } from "./observations.ts";
import { ownershipShape, ownershipStore } from "./ownership.ts";
import { checkShardKeys, isMongos, shardKeysOf } from "./shard-keys.ts";
import { stateStore, statesShape } from "./states.ts";
import { journalShape, journalStore, partsShape, partsStore, settingsShape, settingsStore } from "./texts.ts";
import { logStore, transcriptShape } from "./transcript.ts";
import { turnStore, turnsShape } from "./turns.ts";

export interface MongoStore extends Store {
  /** Indexes that are not there as they must be; makes none. */
  checkIndexes(): Promise<IndexProblem[]>;
  /** Resolves where the server answers. @throws `store_unavailable` */
  ping(): Promise<void>;
}

export interface MongoStoreOptions {
  /** Exactly one of `url` and `client`; a client that is handed in is not closed. */
  url?: string;
  client?: MongoClient;
  database: string;
  system: System;
  log: Logger;
}

/** Majority in both directions, on the primary, whatever the URL says (rule 3). */
const concerns = {
  readConcern: new ReadConcern("majority"),
  readPreference: "primary",
  writeConcern: { w: "majority", wtimeoutMS: limits.storeMajorityMsMax },
} as const;

/** Values as the mappings expect them, whatever a client that was handed in prefers. */
const values = {
  ignoreUndefined: true,
  promoteValues: true,
  promoteLongs: true,
  useBigInt64: false,
  promoteBuffers: false,
  raw: false,
} as const;

/** How a client of ours connects. The driver repeats a write by itself only where the server can tell a repeat. */
export const clientOptions: MongoClientOptions = {
  appName: "headfast",
  retryWrites: true,
  retryReads: true,
  maxPoolSize: limits.storePoolMax,
  serverSelectionTimeoutMS: limits.storeSelectMsMax,
  connectTimeoutMS: limits.storeConnectMsMax,
  socketTimeoutMS: limits.storeSocketMsMax,
  waitQueueTimeoutMS: limits.storeQueueMsMax,
};

/**
 * Connects, checks the shard keys of a cluster, makes and checks the indexes.
 * @throws `configuration`, `store_unavailable`, `index_missing`
 */
export async function openMongoStore(options: MongoStoreOptions): Promise<MongoStore> {
  checkDatabaseName(options.database);
  const { client, owned } = clientOf(options);
  try {
    await client.connect();
    const sharded = await isMongos(client);
    if (sharded) await checkShardKeys(shardKeysOf(client, options.database));
    const db = databaseOf(client, options.database);
    const around: Surroundings = { log: options.log, system: options.system, sharded };
    await ensureIndexes(db, documentsOf(db, settingsShape, around), options.log);
    return storeOn(db, around, async () => {
      if (owned) await client.close();
    });
  } catch (error) {
    if (owned) await client.close();
    throw storeError(error, "opening the store");
  }
}

/** What MongoDB allows on every system it runs on. */
function checkDatabaseName(name: string): void {
  if (name !== "" && Buffer.byteLength(name) < 64 && !/[/\\. "$*<>:|?\0]/.test(name)) return;
  throw new HeadfastError(
    "configuration",
    `${JSON.stringify(name)} cannot name a MongoDB database: 1 to 63 bytes, none of / \\ . " $ * < > : | ? nor a space`,
  );
}

function clientOf({ url, client }: MongoStoreOptions): { client: MongoClient; owned: boolean } {
  if (client !== undefined && url === undefined) return { client, owned: false };
  if (url === undefined || client !== undefined)
    throw new HeadfastError("configuration", "the store needs either a MongoDB URL or a client");
  try {
    return { client: new MongoClient(url, clientOptions), owned: true };
  } catch (error) {
    // Without the cause: it quotes the URL, password included.
    throw new HeadfastError(
      "configuration",
      `the MongoDB URL cannot be used (${error instanceof Error ? error.name : "unknown"}); check HEADFAST_MONGO_URL`,
    );
  }
}

function databaseOf(client: MongoClient, database: string): Db {
  return client.db(database, { ...concerns, ...values });
}

function documentsOf<T extends object>(db: Db, shape: Shape<T>, around: Surroundings): Documents<T> {
  return new Documents(db.collection<Stored>(shape.collection), shape, around);
}

function storeOn(db: Db, around: Surroundings, close: () => Promise<void>): MongoStore {
  const of = <T extends object>(shape: Shape<T>): Documents<T> => documentsOf(db, shape, around);
  return {
    ownership: ownershipStore(of(ownershipShape)),
    turns: turnStore(of(turnsShape)),
    log: logStore(of(transcriptShape)),
    notes: noteStore(of(notesShape)),
    observations: observationStore(of(observationShape)),
    states: stateStore(of(statesShape)),
    parts: partsStore(of(partsShape)),
    journal: journalStore(of(journalShape)),
    settings: settingsStore(of(settingsShape)),
    checkIndexes: async () => (await missingIndexes(db)).map(problemOf),
    ping: () => ping(db),
    close,
  };
}

async function ping(db: Db): Promise<void> {
  try {
    await db.command({ ping: 1 });
  } catch (error) {
    throw storeError(error, "ping");
  }
}
