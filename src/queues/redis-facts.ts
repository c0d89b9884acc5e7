/** What `INFO` and `TIME` say of a server, and what makes one unfit. Pure. */
import { HeadfastError } from "../domain/errors.ts";
import { limits } from "../domain/limits.ts";

export interface RedisFacts {
  version: string;
  /** Changes when the process does. */
  runId: string;
  uptimeMs: number;
  /** `noeviction` unless someone set it otherwise; empty where the server does not tell. */
  evictionPolicy: string;
}

/** Reads the text of `INFO`. */
export function readInfo(info: string): RedisFacts {
  const fields = new Map(
    info.split(/\r?\n/u).map((line): [string, string] => {
      const colon = line.indexOf(":");
      return [line.slice(0, Math.max(colon, 0)), line.slice(colon + 1)];
    }),
  );
  return {
    version: fields.get("redis_version") ?? "",
    runId: fields.get("run_id") ?? "",
    uptimeMs: Number(fields.get("uptime_in_seconds") ?? 0) * 1_000,
    evictionPolicy: fields.get("maxmemory_policy") ?? "",
  };
}

/** The answer of `TIME` in milliseconds. */
export function readTime([seconds, microseconds]: readonly (string | number)[]): number {
  return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000);
}

/**
 * Why the server cannot be used, or undefined.
 * @param skewMs own wall clock minus Redis time
 */
export function unfit(facts: RedisFacts, skewMs: number): HeadfastError | undefined {
  if (isOlderThan(facts.version, 6, 2))
    return new HeadfastError("configuration", `Redis ${facts.version} is too old: Headfast needs 6.2 or newer`, {
      data: { version: facts.version },
    });
  if (facts.evictionPolicy !== "" && facts.evictionPolicy !== "noeviction") {
    const message = `Redis has maxmemory-policy ${facts.evictionPolicy}, which throws away locks and queued turns: set it to noeviction (CONFIG SET maxmemory-policy noeviction, and in redis.conf)`;
    return new HeadfastError("eviction_policy", message, { data: { policy: facts.evictionPolicy } });
  }
  if (Math.abs(skewMs) > limits.clockSkewMsMax) {
    const message = `this machine's clock is ${Math.abs(Math.round(skewMs))} ms ${skewMs > 0 ? "ahead of" : "behind"} Redis; at most ${limits.clockSkewMsMax} ms are allowed: set the clock (NTP)`;
    return new HeadfastError("clock_skew", message, { data: { skewMs: Math.round(skewMs) } });
  }
  return undefined;
}

function isOlderThan(version: string, major: number, minor: number): boolean {
  const [hasMajor = 0, hasMinor = 0] = version.split(".").map(Number);
  return hasMajor < major || (hasMajor === major && hasMinor < minor);
}
