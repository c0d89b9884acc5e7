/** Redis' and BullMQ's errors as ours: the one place where they are translated, by code. */
import { HeadfastError } from "../domain/errors.ts";

/**
 * Replies that say "this server cannot do it now": out of memory, loading, a replica, no quorum, a cluster that moves.
 * The first word of a Redis error reply is its code.
 */
const passing = new Set([
  "OOM",
  "LOADING",
  "READONLY",
  "MASTERDOWN",
  "NOREPLICAS",
  "BUSY",
  "TRYAGAIN",
  "CLUSTERDOWN",
  "MISCONF",
  "UNBLOCKED",
]);
const refusing = new Set(["NOAUTH", "WRONGPASS", "NOPERM"]);

/**
 * Anything that a call to Redis threw. A lost connection and a server that says "not now" are `queue_unavailable`, a
 * refused login is `configuration`; what is left is a bug of ours.
 */
export function queueError(doing: string, thrown: unknown): HeadfastError {
  if (thrown instanceof HeadfastError) return thrown;
  const error = firstOf(thrown);
  const code = codeOf(error);
  const cause = bare(error);
  if (passing.has(code)) return new HeadfastError("queue_unavailable", `${doing}: Redis answers ${code}`, { cause, data: { reply: code } });
  if (refusing.has(code))
    return new HeadfastError("configuration", `${doing}: Redis refuses with ${code}; check user, password and ACL`, {
      cause,
      data: { reply: code },
    });
  if (isReply(error)) return new HeadfastError("unexpected", `${doing}: Redis answers ${code}`, { cause, data: { reply: code } });
  return new HeadfastError("queue_unavailable", `${doing}: Redis does not answer`, { cause });
}

/** An error that a script answers as text instead of failing as a whole. */
export function replyError(doing: string, text: string): HeadfastError {
  const error = new Error(text);
  error.name = "ReplyError";
  return queueError(doing, error);
}

/** Runs one call to Redis with its error translated. */
export async function translated<T>(doing: string, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    throw queueError(doing, error);
  }
}

/** A transaction that was not run says so; why, its first command says. */
function firstOf(error: unknown): unknown {
  const { previousErrors } = (error ?? {}) as { previousErrors?: unknown[] };
  return previousErrors?.[0] ?? error;
}

/** The driver hangs the command with its arguments on the error: prompt text, that belongs in no log. */
function bare(error: unknown): unknown {
  if (error instanceof Error && "command" in error) delete error.command;
  return error;
}

/** An answer of the server, as opposed to a fault on the way. A script's error carries the code of what it called. */
function isReply(error: unknown): boolean {
  return error instanceof Error && error.name === "ReplyError";
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return "";
  if (!isReply(error)) return (error as NodeJS.ErrnoException).code ?? error.name;
  const words = error.message.split(/[^A-Za-z]+/u);
  return words.find((word) => passing.has(word) || refusing.has(word)) ?? words[0] ?? "";
}
