/** A look at a MongoDB server and at one namespace's database, for `doctor`. Changes nothing there. */
import { MongoClient } from "mongodb";
import { HeadfastError } from "../domain/errors.ts";
import { storeError } from "./errors.ts";
import { type IndexProblem, missingIndexes, problemOf } from "./indexes.ts";
import { isMongos } from "./shard-keys.ts";
import { clientOptions } from "./store.ts";

export interface MongoInspection {
  version: string;
  /** The server's newest wire version; the driver needs 9. */
  wireVersion: number;
  /** The stand-in of the launcher, which is for trying and testing only. */
  standIn: boolean;
  kind: "standalone" | "replica set" | "sharded cluster";
  /** The database holds no collection yet: a first start makes all. */
  fresh: boolean;
  indexProblems: IndexProblem[];
  /** As stored; `null` before the first start. */
  shards: number | null;
}

/** @throws `store_unavailable`, `configuration` */
export async function inspectMongo(url: string, database: string): Promise<MongoInspection> {
  const client = clientOf(url);
  try {
    await client.connect();
    const admin = client.db("admin");
    const [hello, build] = [
      await admin.command({ hello: 1 }).catch(() => admin.command({ isMaster: 1 })),
      await admin.command({ buildInfo: 1 }),
    ];
    const db = client.db(database);
    const fresh = (await db.listCollections({}, { nameOnly: true }).toArray()).length === 0;
    const shards = await db.collection<{ _id: string; value?: unknown }>("settings").findOne({ _id: "shards" });
    return {
      version: String(build.version),
      wireVersion: Number(hello.maxWireVersion),
      standIn: String(build.version).endsWith("stand-in"),
      kind: (await isMongos(client)) ? "sharded cluster" : hello.setName === undefined ? "standalone" : "replica set",
      fresh,
      indexProblems: fresh ? [] : (await missingIndexes(db)).map(problemOf),
      shards: shards === null ? null : Number(shards.value),
    };
  } catch (error) {
    throw storeError(error, "looking at the MongoDB server");
  } finally {
    await client.close();
  }
}

function clientOf(url: string): MongoClient {
  try {
    return new MongoClient(url, clientOptions);
  } catch (error) {
    // Without the cause: it quotes the URL, password included.
    throw new HeadfastError("configuration", `the MongoDB URL cannot be used (${error instanceof Error ? error.name : "unknown"})`);
  }
}
