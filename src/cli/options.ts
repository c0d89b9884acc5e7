/** The options of one call, read by name and checked. */
import { UsageError } from "./usage.ts";

/** As parsed: text for an option with a value, `true` for one without. */
export type RawOptions = Readonly<Record<string, unknown>>;

export class Options {
  readonly #raw: RawOptions;

  constructor(raw: RawOptions) {
    this.#raw = raw;
  }

  /** True where the option was given. */
  flag(name: string): boolean {
    return this.#raw[camel(name)] === true;
  }

  /** The value, or undefined where the option was not given. @throws {UsageError} where it was given twice */
  text(name: string): string | undefined {
    const value = this.#raw[camel(name)];
    if (Array.isArray(value)) throw new UsageError(`--${name} was given ${value.length} times`);
    return typeof value === "string" ? value : undefined;
  }

  /** @throws {UsageError} where it was not given */
  required(name: string): string {
    const value = this.text(name);
    if (value === undefined || value === "") throw new UsageError(`--${name} is needed`);
    return value;
  }

  /** A whole number within bounds. @throws {UsageError} */
  whole(name: string, { min, max = Number.MAX_SAFE_INTEGER }: { min: number; max?: number }): number | undefined {
    const value = this.text(name);
    if (value === undefined) return undefined;
    const number = Number(value);
    if (/^-?\d+$/u.test(value) && number >= min && number <= max) return number;
    const bounds = max === Number.MAX_SAFE_INTEGER ? `from ${min} on` : `from ${min} to ${max}`;
    throw new UsageError(`--${name} must be a whole number ${bounds}, got ${JSON.stringify(value)}`);
  }
}

function camel(name: string): string {
  return name.replace(/-([a-z])/gu, (_, letter: string) => letter.toUpperCase());
}
