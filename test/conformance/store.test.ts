import { openMongoStore } from "../../src/store/store.ts";
import { realSystem } from "../../src/system.ts";
import { memoryStore } from "../../src/testing/memory-store.ts";
import { dropDatabase, silent } from "../support/mongo.ts";
import { mongoUrl, uniqueName } from "../support/services.ts";
import { storeSuite } from "./store-suite.ts";

storeSuite("store in memory", async () => ({ store: memoryStore(), remove: async () => {} }));

storeSuite("store in MongoDB", async () => {
  const database = uniqueName("store");
  const store = await openMongoStore({ url: mongoUrl(), database, system: realSystem, log: silent });
  return { store, remove: () => dropDatabase(database) };
});
