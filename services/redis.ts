// Redis: the ways to one, in order of preference, and one of one's own.
import { isListening, redisFault } from "./check.ts";
import { composeServer } from "./compose.ts";
import { debianRedis, type Program } from "./debian.ts";
import { type Found, firstThatServes, type Refusal, type Way } from "./order.ts";
import { type OwnServer, type Start, startOwn } from "./own.ts";
import { onFreePort, startGuarded, which } from "./process.ts";

type Log = (line: string) => void;

const defaultPort = 6379;
const advice =
  "Install one of: a Redis 6.2 or newer (Debian, Ubuntu: sudo apt-get install redis-server; macOS: brew install redis), or Docker with its compose plugin. " +
  "Or set HEADFAST_REDIS_URL.";

/** A Redis to use: found, or else started in memory only (it ends with this process). Throws NoServerError. */
export async function findOrStartRedis(log: Log): Promise<Found> {
  return firstThatServes("Redis", redisWays(log), advice, log);
}

/** The ways to a Redis, the preferred first. */
export function redisWays(log: Log): Way<Found>[] {
  const url = process.env.HEADFAST_REDIS_URL;
  return [
    { name: "HEADFAST_REDIS_URL", attempt: async () => (url ? checked(url, "HEADFAST_REDIS_URL") : { reason: "not set" }) },
    {
      name: `a server listening on 127.0.0.1:${defaultPort}`,
      attempt: async () =>
        (await isListening(defaultPort)) ? checked(`redis://127.0.0.1:${defaultPort}`, "found running") : { reason: "nothing listens" },
    },
    { name: "docker compose", attempt: async () => faultless(await composeServer("redis", defaultPort, log)) },
    { name: "redis-server on the PATH", attempt: async () => asFound(await programOnPath(), "redis-server on the PATH", log) },
    { name: "Debian's redis-server package", attempt: async () => asFound(await debianRedis(log), "Debian's redis-server package", log) },
  ];
}

async function checked(url: string, origin: string): Promise<Found | Refusal> {
  const fault = await redisFault(url);
  return fault ? { reason: fault, passedOver: true } : { url, origin, started: false, stop: async () => undefined };
}

async function programOnPath(): Promise<Program | Refusal> {
  const path = await which("redis-server");
  return path ? { path, env: process.env } : { reason: "there is none" };
}

async function asFound(program: Program | Refusal, origin: string, log: Log): Promise<Found | Refusal> {
  if ("reason" in program) return program;
  log(`starting ${origin}…`);
  const server = await startOwn("redis", starter(program, {}), {});
  return faultless({ url: server.url, origin, started: true, stop: server.stop });
}

/** A server that we started must pass the check too: the program may be too old. */
async function faultless(server: Found | Refusal): Promise<Found | Refusal> {
  if ("reason" in server) return server;
  const fault = await redisFault(server.url);
  if (!fault) return server;
  await server.stop();
  return { reason: fault, passedOver: true };
}

/** How to start `redis-server` so that it never saves on its own, refuses rather than forgets, and logs every write if asked to. */
function starter(program: Program, options: { appendOnly?: boolean; config?: Record<string, string> }): Start {
  return (folder, wanted, removeWithUs) =>
    onFreePort(wanted, (port) => {
      const settings: Record<string, string> = {
        port: String(port),
        bind: "127.0.0.1",
        dir: folder,
        save: "",
        "maxmemory-policy": "noeviction",
        appendonly: options.appendOnly ? "yes" : "no",
        ...options.config,
      };
      const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
      return startGuarded([program.path, ...args], {
        ready: /Ready to accept connections/,
        env: program.env,
        ...(removeWithUs && { folder }),
      });
    });
}

/**
 * A Redis of one's own on a free loopback port (or `port`), for tests that empty, kill or fill it: no snapshots, no eviction; `appendOnly` logs writes
 * (synced each second unless `config.appendfsync` says otherwise; what was acknowledged survives SIGKILL in any case), so that `restart` brings them back.
 * `dir`: its data folder, kept; else a temporary one. `config`: further settings, by their names in redis.conf. Throws NoServerError when no redis-server
 * can be had (a Docker container does not serve here).
 */
export async function ownRedis(
  options: { port?: number; appendOnly?: boolean; dir?: string; config?: Record<string, string>; log?: Log } = {},
): Promise<OwnServer> {
  return startOwn("redis", starter(await redisProgram(options.log ?? (() => undefined)), options), options);
}

/** The `redis-server` that `ownRedis` runs: from the PATH, or Debian's. Throws NoServerError. */
export async function redisProgram(log: Log): Promise<Program> {
  const ways: Way<Found & { program: Program }>[] = [
    { name: "redis-server on the PATH", attempt: async () => holding(await programOnPath()) },
    { name: "Debian's redis-server package", attempt: async () => holding(await debianRedis(log)) },
  ];
  return (await firstThatServes("redis-server program", ways, advice, log)).program;
}

function holding(program: Program | Refusal): (Found & { program: Program }) | Refusal {
  return "reason" in program ? program : { program, url: "", origin: program.path, started: false, stop: async () => undefined };
}
