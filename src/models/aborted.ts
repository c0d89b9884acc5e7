/** An aborted signal as one of our errors: one function for every model. */
import { type ErrorCode, HeadfastError, isHeadfastError } from "../domain/errors.ts";

const plainReasons: readonly ErrorCode[] = ["lease_lost", "draining", "model_timeout"];

/**
 * What a model throws when its call was aborted, with the signal's reason as cause: the reason's own code where it is
 * one of ours (or its name), `model_timeout` for a timeout, else `model_later`, for the caller's wish is no attempt (I12).
 */
export function abortedError(signal: AbortSignal): HeadfastError {
  const reason: unknown = signal.reason;
  const named = plainReasons.find((code) => code === reason);
  if (isHeadfastError(reason))
    return new HeadfastError(reason.code, `the model call was aborted: ${reason.message}`, {
      cause: reason,
      kind: reason.kind,
      data: reason.data,
    });
  if (reason instanceof Error && reason.name === "TimeoutError")
    return new HeadfastError("model_timeout", "the model did not answer in time", { cause: reason });
  return new HeadfastError(
    named ?? "model_later",
    `the model call was aborted: ${reason instanceof Error ? reason.message : String(reason)}`,
    { cause: reason },
  );
}

/** Settles as `work` does, or rejects as soon as the signal aborts; what `work` does afterwards is dropped. */
export async function unlessAborted<T>(signal: AbortSignal, work: () => T | Promise<T>): Promise<T> {
  if (signal.aborted) throw abortedError(signal);
  let onAbort: (() => void) | undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    onAbort = () => reject(abortedError(signal));
    signal.addEventListener("abort", onAbort, { once: true });
  });
  try {
    return await Promise.race([aborted, work()]);
  } finally {
    if (onAbort !== undefined) signal.removeEventListener("abort", onAbort);
  }
}
