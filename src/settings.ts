/** What a host and a worker are started with, checked whole, by name, before anything is opened. */
import { z } from "zod";
import { HeadfastError } from "./domain/errors.ts";
import { limits } from "./domain/limits.ts";

/** A timer of Node's takes no longer time: it would end at once. */
const timerMsMax = 2 ** 31 - 1;

const connection = {
  redis: z.string().optional(),
  mongo: z.string().optional(),
  namespace: z.string().optional(),
  shards: z.int().min(1).max(limits.shardsMax).optional(),
  logger: z.custom<object>((value) => typeof value === "object" && value !== null && "warn" in value, "must be a logger").optional(),
  parts: z.custom<object>((value) => typeof value === "object" && value !== null, "must be an object").optional(),
};

const connectionSettings = z.strictObject(connection);

const workerSettings = z.strictObject({
  ...connection,
  bots: z.array(
    z.custom((bot) => typeof (bot as { attemptsMax?: unknown } | null)?.attemptsMax === "number", "is not what defineBot gives"),
    "must be a list of what defineBot gives",
  ),
  concurrency: z.int().min(1).max(limits.concurrencyMax).optional(),
  observeEveryMs: z.number().min(0).max(timerMsMax).optional(),
  drainMs: z.number().min(0).max(timerMsMax).optional(),
});

/** @throws {HeadfastError} `configuration` naming the call and the field */
export function checkConnection(call: string, given: unknown): void {
  check(call, connectionSettings, given);
}

/** @throws {HeadfastError} `configuration` naming the call and the field */
export function checkWorkerSettings(call: string, given: unknown): void {
  check(call, workerSettings, given);
}

function check(call: string, schema: z.ZodType, given: unknown): void {
  const refused = (what: string, field?: string): HeadfastError =>
    new HeadfastError("configuration", `${call}: ${what}`, { data: { call, ...(field !== undefined && { field }) } });
  if (given === null || typeof given !== "object") throw refused("give an object of settings");
  const checked = schema.safeParse(given);
  if (!checked.success) {
    const [{ path, message } = { path: [], message: "" }] = checked.error.issues;
    const field = path.map(String).join(".");
    throw refused(field === "" ? message : `${field}: ${message}`, field);
  }
  const fault = addressFault(given as Address);
  if (fault !== undefined) throw refused(`${fault.field} ${fault.why}`, fault.field);
}

/** Where a deployment is. */
export interface Address {
  redis?: string | undefined;
  mongo?: string | undefined;
  namespace?: string | undefined;
}

/** What is wrong with it, if anything; the URLs are not shown, they may hold passwords. */
export function addressFault({ redis, mongo, namespace }: Address): { field: keyof Address; why: string } | undefined {
  if (redis !== undefined && !isRedisUrl(redis))
    return { field: "redis", why: "must be a URL that begins with redis:// or rediss://, as redis://127.0.0.1:6379" };
  if (mongo !== undefined && !/^mongodb(\+srv)?:\/\/[^/\s]+/u.test(mongo))
    return { field: "mongo", why: "must be a URL that begins with mongodb:// or mongodb+srv://, as mongodb://127.0.0.1:27017" };
  if (namespace !== undefined && !/^[a-z0-9][a-z0-9_-]{0,37}$/u.test(namespace))
    return { field: "namespace", why: `${JSON.stringify(namespace)} must be 1 to 38 of a-z, 0-9, _ and -` };
  return undefined;
}

/** With a host, a port that exists, and a database number where there is a path. */
function isRedisUrl(text: string): boolean {
  if (!/^rediss?:\/\//u.test(text) || !URL.canParse(text)) return false;
  const { hostname, pathname } = new URL(text);
  return hostname !== "" && /^(?:\/\d*)?$/u.test(pathname);
}
