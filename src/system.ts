/** The only real clock, sleep, ids and chance. Everything else gets them through the `System` port. */
import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import type { System } from "./domain/ports.ts";

export const realSystem: System = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  id: () => randomUUID(),
  random: () => Math.random(),
  sleep(ms, signal) {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const done = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      signal?.addEventListener("abort", done, { once: true });
    });
  },
};

/** A name for this process in logs, attempts and marks: host name, process id, start. */
export function processName(): string {
  return `${hostname()}/${process.pid}/${randomUUID().slice(0, 8)}`;
}
