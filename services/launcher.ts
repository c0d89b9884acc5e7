// Redis and MongoDB on any machine: found or started, and gone again with whoever asked for them.
import { findOrStartMongo } from "./mongo.ts";
import { findOrStartRedis } from "./redis.ts";

export { ownMongo } from "./mongo.ts";
export { NoServerError } from "./order.ts";
export type { OwnServer } from "./own.ts";
export { ownRedis } from "./redis.ts";

/** A server to use. `started`: by us; one that we did not start is never stopped, emptied or reconfigured. `origin`: where it came from, for people. */
export type Service = { url: string; origin: string; started: boolean };

/** What `findOrStart` gives. */
export type Services = {
  redis: Service;
  /** `standIn`: it is no MongoDB, but the stand-in for trying and testing. */
  mongo: Service & { standIn: boolean };
  /** Ends what was started here; the rest is left alone. May be called more than once. */
  stop(): Promise<void>;
};

const notAsked: Service = { url: "", origin: "not asked for", started: false };

/**
 * Finds a Redis and a MongoDB, or starts them on free loopback ports with empty data. The order for each: the URL in the environment (HEADFAST_REDIS_URL,
 * HEADFAST_MONGO_URL), a server listening on the usual port, docker compose, a program on the PATH, then Debian's redis-server, or mongodb-memory-server and
 * the stand-in. `log` gets lines for people: what is used, what was passed over and why, and progress of what takes long. A service that is not wanted
 * (`redis: false`, `mongo: false`) has an empty URL. What was started ends with this process, however that ends. Throws NoServerError when nothing serves.
 */
export async function findOrStart(options: { log?: (line: string) => void; redis?: boolean; mongo?: boolean } = {}): Promise<Services> {
  const log = options.log ?? (() => undefined);
  log("looking for Redis and MongoDB…");
  const [redis, mongo] = await Promise.allSettled([
    options.redis === false ? undefined : findOrStartRedis(log),
    options.mongo === false ? undefined : findOrStartMongo(log),
  ]);
  const stop = async () => {
    await Promise.all([redis, mongo].map((outcome) => (outcome.status === "fulfilled" ? outcome.value?.stop() : undefined)));
  };
  const failures = [redis, mongo].flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason] : []));
  if (redis.status === "rejected" || mongo.status === "rejected") {
    await stop();
    throw failures.length === 1 ? failures[0] : new AggregateError(failures, failures.map((failure) => failure.message).join("\n"));
  }
  for (const [name, service] of Object.entries({ Redis: redis.value, MongoDB: mongo.value })) {
    if (service) log(`${name}: ${service.origin}, ${withoutPassword(service.url)}`);
  }
  return {
    redis: redis.value ? { url: redis.value.url, origin: redis.value.origin, started: redis.value.started } : notAsked,
    mongo: mongo.value
      ? { url: mongo.value.url, origin: mongo.value.origin, started: mongo.value.started, standIn: mongo.value.standIn }
      : { ...notAsked, standIn: false },
    stop,
  };
}

/** The URL as it may be shown: without user and password. */
export function withoutPassword(url: string): string {
  return url.replace(/\/\/[^@/]*@/, "//");
}
