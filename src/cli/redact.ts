/** Passwords of URLs never leave the process: not in errors, logs or listings. */
import type { Cause } from "../domain/errors.ts";
import type { Attempt } from "../domain/records.ts";

/** `scheme://user:password@` up to the last `@` before a space, a quote or a slash: passwords hold `@` too. */
const userInfo = /\b([a-z][a-z0-9+.-]*:\/\/)[^\s/"'<>`]*@/giu;
const secretField = /([?&](?:[a-z_-]*password|[a-z_-]*secret|[a-z_-]*token|[a-z_-]*key)=)[^&\s"'<>`]+/giu;

/** The text with the user and password of every URL, and secrets in its query, as `***`. */
export function redacted(text: string): string {
  return text.replace(userInfo, "$1***@").replace(secretField, "$1***");
}

/** Errors of drivers and providers may quote a URL: so a stored cause is shown without. */
export function redactedCause({ code, message, stack }: Cause): Cause {
  return { code, message: redacted(message), ...(stack !== undefined && { stack: redacted(stack) }) };
}

export function redactedAttempts(attempts: readonly Attempt[]): Attempt[] {
  return attempts.map((attempt) => ({ ...attempt, error: redactedCause(attempt.error) }));
}
