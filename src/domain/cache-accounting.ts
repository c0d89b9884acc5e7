/** What a conversation's prompts cost in tokens, and how much of them the provider's cache served. */
import type { Usage } from "./messages.ts";

export const noUsage: Usage = { fresh: 0, cacheRead: 0, cacheWrite: 0, output: 0 };

/** The sum of two usages; what one of them did not report is unknown in the sum, too. */
export function addUsage(a: Usage, b: Usage): Usage {
  return {
    fresh: add(a.fresh, b.fresh),
    cacheRead: add(a.cacheRead, b.cacheRead),
    cacheWrite: add(a.cacheWrite, b.cacheWrite),
    output: add(a.output, b.output),
  };
}

/** The whole prompt: what was read from the cache, written to it, and neither. `null` where a part is unknown. */
export function promptTokens(usage: Usage): number | null {
  return add(add(usage.fresh, usage.cacheRead), usage.cacheWrite);
}

/** The part of the prompt that came from the cache, in [0, 1]; `null` where it is unknown or there was no prompt. */
export function cacheReadShare(usage: Usage): number | null {
  const whole = promptTokens(usage);
  return whole === null || whole === 0 || usage.cacheRead === null ? null : usage.cacheRead / whole;
}

function add(a: number | null, b: number | null): number | null {
  return a === null || b === null ? null : a + b;
}
