/** A clock that moves when it is told to: sleepers wake in order of time. */
import type { System } from "../domain/ports.ts";

export interface FakeClock extends System {
  /** Moves time on by `ms`, waking whoever sleeps until then, and lets what they start run. */
  advance(ms: number): Promise<void>;
  /** How many sleep now. */
  readonly sleepers: number;
}

interface Sleeper {
  at: number;
  wake(): void;
}

/** @param start wall clock at the beginning, in milliseconds since 1970. */
export function fakeClock(start = Date.UTC(2026, 0, 1)): FakeClock {
  let now = start;
  let ids = 0;
  const sleepers = new Set<Sleeper>();
  return {
    now: () => now,
    monotonic: () => now - start,
    id: () => `id-${String(++ids).padStart(10, "0")}`,
    random: () => 0.5,
    get sleepers() {
      return sleepers.size;
    },
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted) return resolve();
        const end = (): void => {
          sleepers.delete(sleeper);
          signal?.removeEventListener("abort", end);
          resolve();
        };
        const sleeper: Sleeper = { at: now + ms, wake: end };
        sleepers.add(sleeper);
        signal?.addEventListener("abort", end, { once: true });
      }),
    async advance(ms) {
      const until = now + ms;
      for (;;) {
        const [next] = [...sleepers].filter((sleeper) => sleeper.at <= until).sort((a, b) => a.at - b.at);
        if (next === undefined) break;
        now = Math.max(now, next.at);
        next.wake();
        await new Promise((resolve) => setImmediate(resolve));
      }
      now = until;
    },
  };
}
