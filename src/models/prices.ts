/** What tokens cost. Vendors move prices and minimums, so they stand in one data file, each row with its source and date. */
import { HeadfastError } from "../domain/errors.ts";
import data from "./prices.json" with { type: "json" };

/** USD per million tokens. */
export interface Rates {
  input: number;
  write5m: number;
  write1h: number;
  read: number;
  output: number;
}

export interface AnthropicPrice extends Rates {
  model: string;
  flavour: "anthropic";
  /** A prefix shorter than this is not cached, silently. */
  minTokens: number;
  /** Where a prompt of more tokens costs other rates, as a whole. */
  above?: Rates & { tokens: number };
  source: string;
  /** ISO date of the day on which the row was read. */
  checked: string;
  note?: string;
}

/** For comparison only: these providers are not simulated. `null`: not charged apart, or not read. */
export interface OtherPrice {
  model: string;
  flavour: "openai" | "openai-legacy" | "deepseek";
  minTokens: number;
  input: number;
  write: number | null;
  read: number;
  output: number | null;
  source: string;
  checked: string;
  note?: string;
}

/** Every row, Anthropic's first. */
export const prices = data.rows as readonly (AnthropicPrice | OtherPrice)[];

/** The row of a model that the simulator bills. @throws {HeadfastError} `configuration` naming the models there are. */
export function anthropicPrice(model: string): AnthropicPrice {
  const rows = prices.filter((row): row is AnthropicPrice => row.flavour === "anthropic");
  const row = rows.find((candidate) => candidate.model === model);
  if (row !== undefined) return row;
  throw new HeadfastError(
    "configuration",
    `no price is known for ${JSON.stringify(model)}; known are ${rows.map((candidate) => candidate.model).join(", ")}`,
  );
}

/** The rates of a request with that many prompt tokens. */
export function ratesFor(price: AnthropicPrice, promptTokens: number): Rates {
  return price.above !== undefined && promptTokens > price.above.tokens ? price.above : price;
}
