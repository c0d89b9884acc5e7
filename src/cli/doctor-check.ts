/** One finding of `doctor`. */
import { asHeadfastError, type ErrorCode } from "../domain/errors.ts";

export interface Check {
  /** What was looked at. */
  check: string;
  /** `degraded`: it works, but not as it should. `skipped`: could not be looked at. */
  status: "ok" | "degraded" | "failed" | "skipped";
  code?: ErrorCode;
  detail: string;
  /** What to do. */
  advice?: string;
}

/** A check that ended with an error. */
export function failedBy(check: string, error: unknown, advice: string): Check {
  const { code, message } = asHeadfastError(error);
  return { check, status: "failed", code, detail: message, advice };
}
