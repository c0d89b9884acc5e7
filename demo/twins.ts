/**
 * Two bots on one script. Headfast's requests are the very bodies that its model got. The naive twin's are the same ones,
 * with one difference: on each request it puts what PERSONA.md says at that moment, and the files that changed last with
 * their times, where the frozen persona stands, and needs no notices. Both go through one provider's cache rules and prices.
 * Time between turns is virtual, tokens are an estimate.
 */
import { type BillingTotals, billingSimulator } from "../src/models/billing.ts";
import { commonBytes, type NaiveView, type SentBody, sequenceOf } from "./bodies.ts";
import type { Claim } from "./claims.ts";

/** Between two turns, in virtual milliseconds: a chat with pauses, within the five minutes that a provider keeps. */
const pauseMs = 40_000;
/** Between two calls of one turn. */
const callMs = 2_000;

/** System blocks before the persona: the bot's role prompt and Headfast's own sentence. */
const rolePrompts = 2;

interface Block {
  type: string;
  text?: string;
  cache_control?: object;
}

interface Body {
  system: Block[];
  messages: { role: string; content: Block[] }[];
}

/** The request that the naive twin would have sent in this one's place. */
export function naiveBody(sent: SentBody & { naive: NaiveView }): string {
  const body = JSON.parse(sent.body) as Body;
  const text = `${sent.naive.persona}\n\nFiles in your memory, the newest first:\n${sent.naive.listing}`;
  const mark = body.system.at(-1)?.cache_control;
  body.system = [
    ...body.system.slice(0, rolePrompts).map(({ cache_control: _, ...block }) => block),
    { type: "text", text, ...(mark && { cache_control: mark }) },
  ];
  for (const message of body.messages) message.content = message.content.filter(({ text: said }) => !said?.startsWith("<headfast:notice>"));
  return JSON.stringify(body);
}

/** Where a request first departs from the one before it. */
export interface Departure {
  /** From 1. */
  request: number;
  /** In the cached sequence. */
  byte: number;
  before: string;
  after: string;
  /** Whether that byte stands before the first message. */
  inPrefix: boolean;
}

/** All requests that do not begin with the whole of the one before. */
export function departures(bodies: readonly string[]): Departure[] {
  const sequences = bodies.map(sequenceOf);
  return sequences.slice(1).flatMap((now, i) => {
    const before = sequences[i] ?? "";
    const byte = commonBytes(before, now);
    if (byte === Buffer.byteLength(before)) return [];
    const prefixBytes = Buffer.byteLength(before.slice(0, before.indexOf('"messages":[')));
    return [{ request: i + 2, byte, before: excerpt(before, byte), after: excerpt(now, byte), inPrefix: byte < prefixBytes }];
  });
}

function excerpt(text: string, byte: number): string {
  const bytes = Buffer.from(text);
  return bytes
    .subarray(Math.max(0, byte - 24), byte + 24)
    .toString("utf8")
    .replaceAll("\uFFFD", "");
}

export interface Bill extends BillingTotals {
  /** Prompt tokens read from the provider's cache. */
  cached: number;
  /** All other prompt tokens: written to the cache, or not cached at all. */
  fresh: number;
}

/** What a provider would charge. `answers`: the tokens' text of each call's answer. */
export async function billOf(
  bodies: readonly { turnId: string; body: string }[],
  model: string,
  answer: (i: number) => string,
): Promise<Bill> {
  let now = 0;
  const simulator = billingSimulator({ model, system: { monotonic: () => now } });
  for (const [i, { turnId, body }] of bodies.entries()) {
    if (i > 0) now += bodies[i - 1]?.turnId === turnId ? callMs : pauseMs;
    await simulator.call(body, await simulator.outputTokens({ role: "assistant", text: answer(i), toolCalls: [] }));
  }
  const { totals } = simulator;
  return { ...totals, cached: totals.usage.cacheRead ?? 0, fresh: (totals.usage.fresh ?? 0) + (totals.usage.cacheWrite ?? 0) };
}

const rawBodies = "the raw bodies that the model got, each against the one before it";

/** Nothing that was sent ever changed. */
export function onlyAppends(claim: string, bodies: readonly string[]): Claim {
  const found = departures(bodies);
  const [first] = found;
  const shown =
    first === undefined
      ? `${bodies.length} requests, each begins with the whole of the one before`
      : `request ${first.request} departs at byte ${first.byte}`;
  return { claim, ok: bodies.length > 1 && found.length === 0, query: rawBodies, shown };
}

/** The twin's prefix changed under it. */
export function departsInPrefix(claim: string, bodies: readonly string[]): Claim {
  const found = departures(bodies);
  const [first] = found;
  const where = ({ request, byte, before, after }: Departure): string =>
    `first in request ${request}, at byte ${byte}:\n  before ${JSON.stringify(before)}\n  now    ${JSON.stringify(after)}`;
  const all = `${found.length} of ${bodies.length} requests depart from the one before: ${found.map(({ request, byte }) => `${request} at ${byte}`).join(", ")}`;
  const shown = first === undefined ? "it never departs" : `${where(first)}\n${all}`;
  return { claim, ok: first?.inPrefix === true, query: rawBodies.replace("got", "would have got"), shown };
}

/** A larger share read from the cache, less sent fresh, less paid; and both got past the provider's minimum. */
export function cheaper(claim: string, model: string, headfast: Bill, naive: Bill): Claim {
  const better = share(headfast) > share(naive) && headfast.fresh < naive.fresh && headfast.costUsd < naive.costUsd;
  const ok = headfast.calls > 0 && headfast.calls === naive.calls && naive.cached > 0 && better;
  const line = (name: string, bill: Bill): string =>
    `${name.padEnd(9)} ${String(bill.cached).padStart(7)} tokens cached (${Math.round(100 * share(bill))} %), ${String(bill.fresh).padStart(7)} fresh, $${bill.costUsd.toFixed(4)} (without a cache $${bill.uncachedCostUsd.toFixed(4)})`;
  const query = `the Anthropic cache rules and the prices of ${model} in src/models/prices.json; ${pauseMs / 1000} s between turns (virtual), tokens estimated`;
  const saved = `the naive twin pays ${(naive.costUsd / headfast.costUsd).toFixed(1)} times as much`;
  return { claim, ok, query, shown: [line("Headfast", headfast), line("naive", naive), saved].join("\n") };
}

/** Of the prompt tokens, what was read from the cache. */
function share({ cached, fresh }: Bill): number {
  return cached / Math.max(1, cached + fresh);
}
