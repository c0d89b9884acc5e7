/**
 * A worker in a process of its own: one Headfast worker per namespace, with the steered bot. Asked to, it kills itself at
 * one point of a turn. It goes when its parent goes.
 */
import { type Connection, type RunningWorker, silentLogger, startWorker, type WorkerSettings } from "../../../src/main.ts";
import { openQueues } from "../../../src/queues/queues.ts";
import { openMongoStore } from "../../../src/store/store.ts";
import { realSystem } from "../../../src/system.ts";
import { JournalWriter } from "./journal.ts";
import { dyingParts, type Point } from "./points.ts";
import { type BotChoice, steeredBot } from "./steered-bot.ts";

/** What the parent wants, as JSON in `HEADFAST_RIG`. */
export interface WorkerWish {
  name: string;
  folder: string;
  redis: string;
  mongo: string;
  namespaces: string[];
  bots: BotChoice[];
  concurrency: number;
  drainMs: number;
  /** Kills itself there. */
  die?: Point;
}

async function begin(wish: WorkerWish, journal: JournalWriter): Promise<RunningWorker[]> {
  const bots = wish.bots.map((choice) => steeredBot(choice, wish.folder, journal));
  const { redis, mongo, concurrency, drainMs } = wish;
  return Promise.all(
    wish.namespaces.map(async (namespace) => {
      const connection = { redis, mongo, namespace, concurrency, drainMs, bots };
      return wish.die === undefined ? startWorker(connection) : startDying(connection, wish.die, journal);
    }),
  );
}

/** The same on parts that count what is asked of them. */
async function startDying(
  connection: Connection & WorkerSettings & { redis: string; mongo: string; namespace: string },
  point: Point,
  journal: JournalWriter,
): Promise<RunningWorker> {
  const { redis, mongo, namespace } = connection;
  const store = await openMongoStore({ url: mongo, database: namespace, system: realSystem, log: silentLogger });
  const queues = await openQueues({ url: redis, namespace, shards: 1, system: realSystem, log: silentLogger });
  const die = (): void => {
    journal.remark("died", { point });
    process.kill(process.pid, "SIGKILL");
  };
  const parts = dyingParts({ store, queues }, point, die);
  return startWorker({ ...connection, bots: connection.bots.map((bot) => ({ ...bot, model: parts.model(bot.model) })), parts });
}

async function main(): Promise<void> {
  const wish = JSON.parse(process.env.HEADFAST_RIG as string) as WorkerWish;
  const journal = new JournalWriter(wish.folder, wish.name);
  process.on("unhandledRejection", (error) => {
    journal.remark("unhandled", { error: String((error as Error)?.stack ?? error) });
    process.exit(70);
  });
  process.once("disconnect", () => process.exit(71));
  const workers = await begin(wish, journal);
  process.once("SIGTERM", () => void Promise.all(workers.map((worker) => worker.close())).then(() => process.exit(0)));
  process.send?.({ ready: true });
}

void main();
