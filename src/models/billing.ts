/**
 * What a provider would report and charge, without one: the billing simulator, Anthropic flavour. It reads the very body
 * that is sent, so a prefix that changes by one byte shows as a miss here as it would on a bill. Tokens are an estimate
 * (see tokens.ts), so are sums of money; what is read, written and missed follows the provider's published rules.
 */
import { addUsage, noUsage } from "../domain/cache-accounting.ts";
import type { AssistantMessage, Usage } from "../domain/messages.ts";
import type { Model, ModelRequest, System } from "../domain/ports.ts";
import { checkBreakpoints, lifetimes, parseBody, promptBlocks } from "./anthropic-body.ts";
import { type AnthropicPrice, anthropicPrice, ratesFor } from "./prices.ts";
import { cacheBlocks, PromptCache, type Split } from "./prompt-cache.ts";
import { type CountTokens, tokenCounter } from "./tokens.ts";

export interface BillingOptions {
  /** The model whose prices and minimum hold, e.g. `claude-opus-5-5`; the body may name another. */
  model: string;
  system: Pick<System, "monotonic">;
  /** Default: the shared estimate. */
  countTokens?: CountTokens;
}

/** One call's bill. */
export interface Bill {
  usage: Usage;
  /** Written for an hour, and for five minutes: together `usage.cacheWrite`. */
  write1h: number;
  write5m: number;
  /** Estimated, in US dollars, the answer included. */
  costUsd: number;
  /** The same call on a provider without a cache. */
  uncachedCostUsd: number;
}

export interface BillingTotals {
  calls: number;
  usage: Usage;
  costUsd: number;
  uncachedCostUsd: number;
}

/** A call whose answer has not come yet. */
export interface OpenBill {
  /** The answer began: others can read from now on what this call stored. Saying so twice is harmless. */
  firstByte(): void;
  /** True once the answer has begun. */
  readonly begun: boolean;
  /** Adds the bill to the totals. */
  finish(outputTokens: number): Bill;
}

export interface BillingSimulator {
  /** @throws `model_refused` as the provider's 400: no JSON, more than four marks, an hour after five minutes. */
  begin(body: string): Promise<OpenBill>;
  /** A call that is answered at once. @throws as `begin` */
  call(body: string, outputTokens?: number): Promise<Bill>;
  /** The estimated tokens of an answer. */
  outputTokens(message: AssistantMessage): Promise<number>;
  /** All finished calls so far. */
  readonly totals: Readonly<BillingTotals>;
}

/** One workspace's cache and bill. @throws `configuration` for a model without a price. */
export function billingSimulator({ model, system, countTokens }: BillingOptions): BillingSimulator {
  const price = anthropicPrice(model);
  const cache = new PromptCache();
  const counter = async (): Promise<CountTokens> => countTokens ?? (await tokenCounter());
  let totals: BillingTotals = { calls: 0, usage: noUsage, costUsd: 0, uncachedCostUsd: 0 };
  const begin = async (text: string): Promise<OpenBill> => {
    const body = parseBody(text);
    checkBreakpoints(lifetimes(body));
    const blocks = cacheBlocks(body, promptBlocks(body), await counter());
    const { split, keys } = cache.ask(blocks, price.minTokens, system.monotonic());
    return openBill(
      () => cache.answered(keys, system.monotonic()),
      (outputTokens) => {
        const bill = billFor(split, outputTokens, price);
        totals = addBill(totals, bill);
        return bill;
      },
    );
  };
  return {
    begin,
    async call(body, outputTokens = 0) {
      const open = await begin(body);
      open.firstByte();
      return open.finish(outputTokens);
    },
    async outputTokens({ text, toolCalls }) {
      const count = await counter();
      return [text, ...toolCalls.flatMap((call) => [call.name, call.arguments])].reduce((sum, part) => sum + count(part), 0);
    },
    get totals() {
      return totals;
    },
  };
}

/** The model, reporting the simulator's usage in place of its own. A call that broke off after its first byte is billed too. */
export function withBilling(model: Model, simulator: BillingSimulator): Model {
  const call: Model["call"] = async (request) => {
    const open = await simulator.begin(request.body);
    try {
      const reply = await model.call(announcing(request, open));
      open.firstByte();
      return { ...reply, usage: open.finish(await simulator.outputTokens(reply.message)).usage };
    } catch (error) {
      if (open.begun) open.finish(0);
      throw error;
    }
  };
  return { name: model.name, dialect: model.dialect, maxTokens: model.maxTokens, limitKey: model.limitKey, call };
}

function announcing(request: ModelRequest, open: OpenBill): ModelRequest {
  const onDelta = (text: string): void => {
    open.firstByte();
    request.onDelta(text);
  };
  return { ...request, onDelta };
}

function openBill(answered: () => void, finish: (outputTokens: number) => Bill): OpenBill {
  let begun = false;
  return {
    get begun() {
      return begun;
    },
    firstByte() {
      if (!begun) answered();
      begun = true;
    },
    finish,
  };
}

function billFor(split: Split, output: number, price: AnthropicPrice): Bill {
  const { read, write1h, write5m, fresh } = split;
  const prompt = read + write1h + write5m + fresh;
  const rates = ratesFor(price, prompt);
  const answer = output * rates.output;
  return {
    usage: { fresh, cacheRead: read, cacheWrite: write1h + write5m, output },
    write1h,
    write5m,
    costUsd: (fresh * rates.input + write5m * rates.write5m + write1h * rates.write1h + read * rates.read + answer) / 1e6,
    uncachedCostUsd: (prompt * rates.input + answer) / 1e6,
  };
}

function addBill(totals: BillingTotals, bill: Bill): BillingTotals {
  return {
    calls: totals.calls + 1,
    usage: addUsage(totals.usage, bill.usage),
    costUsd: totals.costUsd + bill.costUsd,
    uncachedCostUsd: totals.uncachedCostUsd + bill.uncachedCostUsd,
  };
}
