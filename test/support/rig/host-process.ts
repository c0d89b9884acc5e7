/** A host in a process of its own: does what its parent asks, by the names of the host's own functions. */
import { Headfast, HeadfastError } from "../../../src/index.ts";
import type { Answered, Asked } from "./child.ts";

async function main(): Promise<void> {
  const { redis, mongo, namespace } = JSON.parse(process.env.HEADFAST_RIG as string) as { redis: string; mongo: string; namespace: string };
  const host = await Headfast.connect({ redis, mongo, namespace });
  process.once("disconnect", () => void host.close().then(() => process.exit(0)));
  process.on("message", (asked: Asked) => void answer(host, asked).then((answered) => process.send?.(answered)));
  process.send?.({ ready: true });
}

async function answer(host: Headfast, { id, area, method, args }: Asked): Promise<Answered> {
  const part = host[area as "turns"] as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>;
  const askedAt = performance.now();
  try {
    const value = await (part[method] as (...args: unknown[]) => Promise<unknown>).apply(part, args);
    return { id, value, ms: performance.now() - askedAt };
  } catch (error) {
    return {
      id,
      error: error instanceof HeadfastError ? { code: error.code, message: error.message } : { code: "unexpected", message: String(error) },
      ms: performance.now() - askedAt,
    };
  }
}

void main();
