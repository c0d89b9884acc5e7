// MongoDB: the ways to one, in order of preference, and one of one's own.
import { join } from "node:path";
import { recentFailure, rememberFailure } from "./cache.ts";
import { inspectMongo, isListening } from "./check.ts";
import { composeServer } from "./compose.ts";
import { type Found, firstThatServes, messageOf, type Refusal, type Way } from "./order.ts";
import { type OwnServer, type Start, startOwn } from "./own.ts";
import { onFreePort, startGuarded, which } from "./process.ts";
import { standInCommand } from "./stand-in.ts";

type Log = (line: string) => void;
/** A MongoDB to use; `standIn`: it only stands in for one. */
export type FoundMongo = Found & { standIn: boolean };
/** A way to a server process of ours. */
type Maker = { name: string; standIn: boolean; starter: (durable: boolean, log: Log) => Promise<Start | Refusal> };

const defaultPort = 27017;
const failureKeptMs = 24 * 60 * 60 * 1000;
const advice =
  "Install one of: MongoDB 4.4 or newer (its mongod on the PATH), Docker with its compose plugin, or a JDK 17 or newer with Maven for the stand-in " +
  "(Debian, Ubuntu: sudo apt-get install default-jdk-headless maven). Or set HEADFAST_MONGO_URL.";

/** A MongoDB to use: found, or else started in a temporary folder or in memory (it ends with this process). Throws NoServerError. */
export async function findOrStartMongo(log: Log): Promise<FoundMongo> {
  return firstThatServes("MongoDB", mongoWays(log), advice, log);
}

/** The ways to a MongoDB, the preferred first. */
export function mongoWays(log: Log): Way<FoundMongo>[] {
  const url = process.env.HEADFAST_MONGO_URL;
  return [
    { name: "HEADFAST_MONGO_URL", attempt: async () => (url ? checked(url, "HEADFAST_MONGO_URL") : { reason: "not set" }) },
    {
      name: `a server listening on 127.0.0.1:${defaultPort}`,
      attempt: async () =>
        (await isListening(defaultPort)) ? checked(`mongodb://127.0.0.1:${defaultPort}`, "found running") : { reason: "nothing listens" },
    },
    {
      name: "docker compose",
      attempt: async () => {
        const server = await composeServer("mongo", defaultPort, log);
        return faultless("reason" in server ? server : { ...server, standIn: false });
      },
    },
    ...makers.map((maker) => ({ name: maker.name, attempt: () => startFound(maker, log) })),
  ];
}

async function checked(url: string, origin: string): Promise<FoundMongo | Refusal> {
  const { fault, standIn } = await inspectMongo(url);
  return fault ? { reason: fault, passedOver: true } : { url, origin, standIn, started: false, stop: async () => undefined };
}

async function startFound(maker: Maker, log: Log): Promise<FoundMongo | Refusal> {
  const start = await maker.starter(false, log);
  if ("reason" in start) return start;
  log(`starting ${maker.name}…`);
  const server = await startOwn("mongo", start, {});
  return faultless({ url: server.url, origin: maker.name, started: true, standIn: maker.standIn, stop: server.stop });
}

/** A server that we started must pass the check too: the program may be too old. */
async function faultless(server: FoundMongo | Refusal): Promise<FoundMongo | Refusal> {
  if ("reason" in server) return server;
  const { fault } = await inspectMongo(server.url);
  if (!fault) return server;
  await server.stop();
  return { reason: fault, passedOver: true };
}

const makers: Maker[] = [
  {
    name: "mongod on the PATH",
    standIn: false,
    starter: async () => {
      const path = await which("mongod");
      return path ? mongodStarter(path) : { reason: "there is none" };
    },
  },
  { name: "mongod from mongodb-memory-server", standIn: false, starter: (_durable, log) => memoryServerStarter(log) },
  {
    name: "the MongoDB stand-in",
    standIn: true,
    starter: async (durable, log) => {
      const command = await standInCommand(log);
      return "reason" in command ? command : standInStarter(command, durable);
    },
  },
];

/** mongod acknowledges a majority write on a standalone once its journal has it: it is durable as it is. */
function mongodStarter(path: string): Start {
  return (folder, wanted, removeWithUs) =>
    onFreePort(wanted, (port) =>
      startGuarded([path, "--port", String(port), "--bind_ip", "127.0.0.1", "--dbpath", folder], {
        ready: /Waiting for connections/,
        ...(removeWithUs && { folder }),
      }),
    );
}

/** Its package is not among our dependencies: used where somebody installed it. A download that failed is not tried again for a day. */
async function memoryServerStarter(log: Log): Promise<Start | Refusal> {
  const name = "mongodb-memory-server-core";
  const library = (await import(name).catch(() => undefined)) as { MongoBinary?: { getPath(): Promise<string> } } | undefined;
  if (!library?.MongoBinary) return { reason: `${name} is not installed` };
  const failure = await recentFailure(name, failureKeptMs);
  if (failure) return { reason: `its download failed less than a day ago: ${failure}` };
  log("asking mongodb-memory-server for a mongod (downloaded once, some 100 MB)…");
  try {
    return mongodStarter(await library.MongoBinary.getPath());
  } catch (error) {
    await rememberFailure(name, messageOf(error));
    return { reason: messageOf(error), passedOver: true };
  }
}

function standInStarter(command: readonly string[], durable: boolean): Start {
  return (folder, wanted, removeWithUs) => {
    const store = durable ? ["--file", join(folder, "stand-in.mv"), "--commit-every-write"] : [];
    return onFreePort(wanted, (port) =>
      startGuarded([...command, "--port", String(port), ...store], { ready: /^READY \d+$/, ...(removeWithUs && { folder }) }),
    );
  };
}

/**
 * A MongoDB of one's own on a free loopback port (or `port`), for tests that empty, kill or fill it. `durable`: what was acknowledged survives SIGKILL and is
 * there after `restart`; without it the stand-in forgets everything when it ends (a mongod keeps it either way). `dir`: its data folder, kept; else a
 * temporary one. Throws NoServerError when neither a mongod nor the stand-in can be had (a Docker container does not serve here).
 */
export async function ownMongo(
  options: { port?: number; durable?: boolean; dir?: string; log?: Log } = {},
): Promise<OwnServer & { readonly standIn: boolean }> {
  const log = options.log ?? (() => undefined);
  const ways: Way<FoundMongo & { server: OwnServer }>[] = makers.map((maker) => ({
    name: maker.name,
    attempt: async () => {
      const start = await maker.starter(options.durable ?? false, log);
      if ("reason" in start) return start;
      const server = await startOwn("mongo", start, options);
      return { server, url: server.url, origin: maker.name, started: true, standIn: maker.standIn, stop: server.stop };
    },
  }));
  const { server, standIn } = await firstThatServes("MongoDB of its own", ways, advice, log);
  return Object.defineProperty(server, "standIn", { value: standIn, enumerable: true }) as OwnServer & { readonly standIn: boolean };
}
