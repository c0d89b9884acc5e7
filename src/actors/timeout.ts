/** A bound on what someone else's code takes. */
import type { System } from "../domain/ports.ts";

/** Why a signal aborts that nobody needs any more: a constant, since making an error for each call costs. */
export const finished = new Error("finished");

/**
 * Runs `work` with a signal that aborts with the outer one, after `ms`, or when the work is done; does not wait for work that
 * ignores it. Leaves no timer behind. Rejects with the outer signal's reason, or with `late()`.
 */
export async function withTimeout<T>(
  system: System,
  ms: number,
  outer: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
  late: () => Error,
): Promise<T> {
  outer.throwIfAborted();
  const inner = new AbortController();
  const { signal } = inner;
  const onOuter = (): void => inner.abort(outer.reason);
  outer.addEventListener("abort", onOuter, { once: true });
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });
  aborted.catch(() => undefined); // when the work is done it concerns nobody
  void system.sleep(ms, signal).then(() => {
    if (!signal.aborted) inner.abort(late());
  });
  try {
    return await Promise.race([work(signal), aborted]);
  } finally {
    outer.removeEventListener("abort", onOuter);
    inner.abort(finished);
  }
}
