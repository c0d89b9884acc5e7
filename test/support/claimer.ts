/** A process of its own that claims sessions when it is told to: `claimer.ts DATABASE`, then messages. */
import { openMongoStore } from "../../src/store/store.ts";
import { realSystem } from "../../src/system.ts";
import { silent } from "./mongo.ts";
import { mongoUrl } from "./services.ts";
import { ownership } from "./store-records.ts";

const store = openMongoStore({ url: mongoUrl(), database: process.argv[2] ?? "", system: realSystem, log: silent });

async function claimed(session: string, bot: string): Promise<string> {
  try {
    return (await (await store).ownership.claim(ownership(session, { bot }))).bot;
  } catch (error) {
    return `error ${(error as { code?: string }).code ?? String(error)}`;
  }
}

process.on("message", ({ session, bots }: { session: string; bots: string[] }) => {
  void Promise.all(bots.map((bot) => claimed(session, bot))).then((told) => process.send?.(told));
});
process.on("disconnect", () => void store.then((opened) => opened.close()));
