/** Where Redis and MongoDB are, for one call, and a host on them. */
import { HeadfastError } from "../domain/errors.ts";
import type { Logger } from "../domain/ports.ts";
import { addressFault, type Connection, Headfast } from "../main.ts";
import type { Call } from "./command.ts";
import { type Output, shown } from "./output.ts";
import { UsageError } from "./usage.ts";

export interface Place {
  redis: string;
  mongo: string;
  namespace: string;
}

/**
 * From the options, else from the environment; undefined where neither names a service.
 * @throws `services_missing` where only one is named; {UsageError} naming the option or variable that is wrong
 */
export function placeOf({ options, io }: Pick<Call, "options" | "io">): Place | undefined {
  const redis = options.text("redis") ?? (io.env.HEADFAST_REDIS_URL || undefined);
  const mongo = options.text("mongo") ?? (io.env.HEADFAST_MONGO_URL || undefined);
  const namespace = options.text("namespace") ?? (io.env.HEADFAST_NAMESPACE || "headfast");
  const fault = addressFault({ redis, mongo, namespace });
  if (fault !== undefined) {
    const { field, why } = fault;
    const variable = field === "namespace" ? "HEADFAST_NAMESPACE" : `HEADFAST_${field.toUpperCase()}_URL`;
    throw new UsageError(`${options.text(field) === undefined ? variable : `--${field}`} ${why}`);
  }
  if (redis !== undefined && mongo !== undefined) return { redis, mongo, namespace };
  if (redis === undefined && mongo === undefined) return undefined;
  const missing = redis === undefined ? "--redis (or HEADFAST_REDIS_URL)" : "--mongo (or HEADFAST_MONGO_URL)";
  throw new HeadfastError("services_missing", `${missing} is missing: Redis and MongoDB are needed both`);
}

/** For commands that cannot do without. @throws `services_missing` */
export function requiredPlace(call: Pick<Call, "options" | "io">): Place {
  const place = placeOf(call);
  if (place !== undefined) return place;
  throw new HeadfastError(
    "services_missing",
    "say where Redis and MongoDB are: --redis and --mongo, or HEADFAST_REDIS_URL and HEADFAST_MONGO_URL",
  );
}

/** Runs `work` on a host and closes it, whatever happens. */
export async function withHost<T>(call: Call, work: (hf: Headfast) => Promise<T>): Promise<T> {
  const hf = await Headfast.connect(connectionOf(call));
  try {
    return await work(hf);
  } finally {
    await hf.close();
  }
}

/** @throws `services_missing` */
export function connectionOf(call: Call): Connection {
  return { ...requiredPlace(call), logger: remarks(call.out) };
}

/** Warnings and errors as remarks; the rest is for a worker's log. */
export function remarks(out: Output): Logger {
  const remark = (data: Record<string, unknown>, message: string): void => {
    const detail = [data.bot, data.session, data.code, data.error].filter((part) => typeof part === "string").join(", ");
    out.remark(`headfast: warning: ${message}${detail === "" ? "" : ` (${shown(detail)})`}`);
  };
  return { debug: () => undefined, info: () => undefined, warn: remark, error: remark };
}
