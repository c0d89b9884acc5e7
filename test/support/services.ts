/** Where the services of a test run are, and names that no other test uses. The runner (test/run.ts) starts them. */
import { randomBytes } from "node:crypto";

/** @throws where the test was not started by the runner and no URL is in the environment. */
export function redisUrl(): string {
  return fromEnvironment("HEADFAST_REDIS_URL");
}

/** @throws where the test was not started by the runner and no URL is in the environment. */
export function mongoUrl(): string {
  return fromEnvironment("HEADFAST_MONGO_URL");
}

/**
 * True where the database is the stand-in (mongo-java-server), which has no sharding, no sort by index and loses its
 * last second when it is killed. Skipping a test for it is no answer: test what the code does there.
 */
export function mongoIsStandIn(): boolean {
  return process.env.HEADFAST_MONGO_STAND_IN === "1";
}

/**
 * For a key prefix, a database, a folder: letters, digits and `-` only, never used before. One test owns it and removes
 * what it holds. It is not from the test's seed on purpose: two runs on one server must not meet.
 */
export function uniqueName(prefix: string): string {
  return `${prefix}-${process.pid.toString(36)}-${randomBytes(5).toString("hex")}`;
}

function fromEnvironment(name: string): string {
  const value = process.env[name];
  if (value === undefined || value === "")
    throw new Error(`${name} is not set: run through npm test (npm test -- NAME for one file), or set it`);
  return value;
}
