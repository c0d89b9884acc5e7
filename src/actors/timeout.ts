/** A bound on what someone else's code takes. */
import type { System } from "../domain/ports.ts";

/**
 * Runs `work` with a signal that aborts with the outer one or after `ms`; does not wait for work that ignores it.
 * Leaves no timer behind. Rejects with the outer signal's reason, or with `late()`.
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
  const finished = new AbortController();
  const onOuter = (): void => inner.abort(outer.reason);
  outer.addEventListener("abort", onOuter, { once: true });
  const aborted = new Promise<never>((_, reject) => {
    inner.signal.addEventListener("abort", () => reject(inner.signal.reason as Error), { once: true });
  });
  void system.sleep(ms, finished.signal).then(() => {
    if (!finished.signal.aborted) inner.abort(late());
  });
  try {
    return await Promise.race([work(inner.signal), aborted]);
  } finally {
    finished.abort();
    outer.removeEventListener("abort", onOuter);
    aborted.catch(() => undefined); // a late abort concerns nobody any more
  }
}
