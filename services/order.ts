// The order of preference, apart from what is preferred: ways are tried one after the other, and each that does not serve says why.

/** A server to use. */
export type Found = {
  url: string;
  /** Where it came from, for people: "HEADFAST_REDIS_URL", "redis-server on the PATH". */
  origin: string;
  /** Whether we started it; only then may it be stopped. */
  started: boolean;
  stop(): Promise<void>;
};

/** Why a way does not serve. `passedOver`: there was a server, but not one to use. */
export type Refusal = { reason: string; passedOver?: boolean };

/** One way to a server. `attempt` may throw: that is a refusal too. */
export type Way<T extends Found> = { name: string; attempt: () => Promise<T | Refusal> };

/** Nothing gave a server: the message says what was tried, in order, and what to install. */
export class NoServerError extends Error {
  readonly code = "NO_SERVER";
  readonly tried: readonly { name: string; reason: string }[];

  constructor(what: string, tried: readonly { name: string; reason: string }[], advice: string) {
    super([`No ${what} to use. Tried, in this order:`, ...tried.map(({ name, reason }) => `  - ${name}: ${reason}`), advice].join("\n"));
    this.name = "NoServerError";
    this.tried = tried;
  }
}

/** The first way that gives a server. Logs each server passed over; throws NoServerError with `advice` when all ways are used up. */
export async function firstThatServes<T extends Found>(
  what: string,
  ways: readonly Way<T>[],
  advice: string,
  log: (line: string) => void,
): Promise<T> {
  const tried: { name: string; reason: string }[] = [];
  for (const { name, attempt } of ways) {
    const result = await attempt().catch((error: unknown): Refusal => ({ reason: messageOf(error), passedOver: true }));
    if ("url" in result) return result;
    if (result.passedOver) log(`${what}: passing over ${name}: ${result.reason}`);
    tried.push({ name, reason: result.reason });
  }
  throw new NoServerError(what, tried, advice);
}

/** The message of whatever was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
