/** What `doctor` finds out about Redis, MongoDB and git. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { limits } from "../domain/limits.ts";
import { inspectMongo, inspectRedis, type MongoInspection, type RedisInspection } from "../main.ts";
import { realSystem } from "../system.ts";
import type { Place } from "./connect.ts";
import { type Check, failedBy } from "./doctor-check.ts";
import { redacted } from "./redact.ts";

const redisVersionMin = "6.2";
const wireVersionMin = 9;
const gitVersionMin = "2.31";
const gitMsMax = 10_000;

export interface Inspected<T> {
  checks: Check[];
  /** Undefined where it did not answer. */
  seen: T | undefined;
}

export async function checkRedis({ redis }: Place): Promise<Inspected<RedisInspection>> {
  try {
    const seen = await inspectRedis(redis, realSystem);
    return { checks: redisChecks(seen), seen };
  } catch (error) {
    return {
      checks: [failedBy("redis", error, `start it, or correct the URL (${redacted(redis)}); sending goes on without, workers wait`)],
      seen: undefined,
    };
  }
}

/** Pure: what these facts mean. */
export function redisChecks({ version, evictionPolicy, appendOnly, skewMs }: RedisInspection): Check[] {
  return [
    isOlder(version, redisVersionMin)
      ? {
          check: "redis",
          status: "failed",
          code: "configuration",
          detail: `version ${version}`,
          advice: `Headfast needs Redis ${redisVersionMin} or newer`,
        }
      : { check: "redis", status: "ok", detail: `version ${version}` },
    evictionCheck(evictionPolicy),
    persistenceCheck(appendOnly),
    Math.abs(skewMs) > limits.clockSkewMsMax
      ? {
          check: "redis clock",
          status: "failed",
          code: "clock_skew",
          detail: `this machine is ${Math.abs(skewMs)} ms ${skewMs > 0 ? "ahead" : "behind"}`,
          advice: `set the clock (NTP); at most ${limits.clockSkewMsMax} ms are allowed`,
        }
      : { check: "redis clock", status: "ok", detail: `${Math.abs(skewMs)} ms from this machine's` },
  ];
}

function evictionCheck(policy: string): Check {
  const check = "redis eviction policy";
  if (policy === "noeviction") return { check, status: "ok", detail: policy };
  if (policy === "") return { check, status: "degraded", detail: "the server does not tell it", advice: "make sure that it is noeviction" };
  return {
    check,
    status: "failed",
    code: "eviction_policy",
    detail: `maxmemory-policy is ${policy}: it throws away locks and queued turns`,
    advice: "CONFIG SET maxmemory-policy noeviction, and the same in redis.conf; workers refuse to start until then",
  };
}

function persistenceCheck(appendOnly: boolean | null): Check {
  const check = "redis persistence";
  if (appendOnly === true) return { check, status: "ok", detail: "append-only file on" };
  const detail =
    appendOnly === null
      ? "the server does not tell it"
      : "append-only file off: after a restart the queues are rebuilt from MongoDB, and turns that other clients put into Redis alone are gone";
  return { check, status: "degraded", detail, advice: "CONFIG SET appendonly yes, and the same in redis.conf" };
}

export async function checkMongo({ mongo, namespace }: Place): Promise<Inspected<MongoInspection>> {
  try {
    const seen = await inspectMongo(mongo, namespace);
    return { checks: mongoChecks(seen, namespace), seen };
  } catch (error) {
    return {
      checks: [failedBy("mongodb", error, `start it, or correct the URL (${redacted(mongo)}); nothing can be sent or run without`)],
      seen: undefined,
    };
  }
}

/** Pure: what these facts mean. */
export function mongoChecks(seen: MongoInspection, namespace: string): Check[] {
  const checks: Check[] = [serverCheck(seen)];
  if (seen.fresh)
    return [
      ...checks,
      { check: "mongodb indexes", status: "ok", detail: `the database ${namespace} is empty; the first start makes them` },
    ];
  checks.push(
    ...seen.indexProblems.map(
      ({ collection, name, advice }): Check => ({
        check: "mongodb indexes",
        status: "failed",
        code: "index_missing",
        detail: `${collection} lacks ${name}`,
        advice,
      }),
    ),
  );
  if (seen.indexProblems.length === 0) checks.push({ check: "mongodb indexes", status: "ok", detail: "all there" });
  const shards = seen.shards === null ? "not stored yet; the first start stores it" : String(seen.shards);
  return [...checks, { check: "shards", status: "ok", detail: shards }];
}

function serverCheck({ version, wireVersion, standIn, kind }: MongoInspection): Check {
  const check = "mongodb";
  const detail = `version ${version}, wire version ${wireVersion}, ${kind}`;
  if (wireVersion < wireVersionMin)
    return {
      check,
      status: "failed",
      code: "configuration",
      detail,
      advice: `the driver needs wire version ${wireVersionMin} (MongoDB 4.4) or newer`,
    };
  if (standIn)
    return {
      check,
      status: "degraded",
      detail: `${detail}; this is the stand-in`,
      advice: "it is for trying and testing; keep nothing in it that must not be lost",
    };
  if (kind === "standalone")
    return { check, status: "degraded", detail, advice: "a single server loses the last moments when it is killed; use a replica set" };
  return { check, status: "ok", detail };
}

export async function checkGit(): Promise<Check> {
  try {
    const { stdout } = await promisify(execFile)("git", ["--version"], { timeout: gitMsMax });
    return gitCheck(stdout);
  } catch (error) {
    return {
      check: "git",
      status: "failed",
      detail: `git --version failed: ${(error as NodeJS.ErrnoException).code ?? "unknown"}`,
      advice: "install git: Memory Repositories are read with it",
    };
  }
}

/** Pure: what `git --version` means. */
export function gitCheck(output: string): Check {
  const version = /(\d+(?:\.\d+)+)/u.exec(output)?.[1] ?? "";
  if (version === "" || isOlder(version, gitVersionMin))
    return { check: "git", status: "failed", detail: output.trim(), advice: `git ${gitVersionMin} or newer is needed` };
  return { check: "git", status: "ok", detail: `version ${version}` };
}

function isOlder(version: string, least: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [leastMajor = 0, leastMinor = 0] = least.split(".").map(Number);
  return !(major > leastMajor || (major === leastMajor && minor >= leastMinor));
}
