/**
 * The prefix and its byte guard: what the product exists for.
 *
 * The *cached sequence* of a request is its prefix and its messages as rendered, in the provider's order, without
 * parameters and cache marks (the `cuts`). Invariants kept here:
 * - I1: the prefix is frozen text, found by its hash; nothing derived enters it (I8).
 * - I2: the outgoing body itself is compared, before every call, with what was recorded: the prefix within one baseline,
 *   the messages always. A difference throws and nothing is sent.
 */
import { createHash } from "node:crypto";
import { HeadfastError, PrefixDriftError } from "./errors.ts";
import { limits } from "./limits.ts";
import type { Dialect, PrefixParts, ToolSpec } from "./ports.ts";

export interface Prefix {
  text: string;
  /** SHA-256 of the text's UTF-8 bytes, in hex. */
  sha256: string;
}

export function sha256(text: string): string {
  return createHash("sha256").update(text, "utf8").digest("hex");
}

/** By code unit, never by locale: the same set gives the same bytes on every machine. */
export function sortTools<T extends ToolSpec>(tools: readonly T[]): T[] {
  return [...tools].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}

/** The frozen text of a tool set, for `prefix_parts`. @throws `configuration` for doubled names and exceeded limits. */
export function toolsText(tools: readonly ToolSpec[]): string {
  if (tools.length > limits.toolsMax)
    throw new HeadfastError("configuration", `a bot has ${tools.length} tools, the limit is ${limits.toolsMax}`);
  const sorted = sortTools(tools).map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
  for (const [i, tool] of sorted.entries()) {
    if (sorted[i + 1]?.name === tool.name) throw new HeadfastError("configuration", `two tools are named ${JSON.stringify(tool.name)}`);
    const bytes = Buffer.byteLength(JSON.stringify(tool));
    if (bytes > limits.toolBytesMax)
      throw new HeadfastError(
        "configuration",
        `the tool ${JSON.stringify(tool.name)} has ${bytes} bytes, the limit is ${limits.toolBytesMax}`,
      );
  }
  return JSON.stringify(sorted);
}

/** Back from the frozen text. */
export function toolsFrom(text: string): ToolSpec[] {
  return JSON.parse(text) as ToolSpec[];
}

/** Renders a prefix; the same parts give the same bytes. */
export function prefixOf(parts: PrefixParts, dialect: Dialect): Prefix {
  const text = dialect.renderPrefix({ ...parts, tools: sortTools(parts.tools) });
  return { text, sha256: sha256(text) };
}

/** A body without its cuts: the cached sequence. Cuts are ranges [from, to), in order, in UTF-16 units. */
export function cachedSequence(body: string, cuts: readonly (readonly [number, number])[]): string {
  let sequence = "";
  let at = 0;
  for (const [from, to] of cuts) {
    if (from < at || to < from || to > body.length)
      throw new HeadfastError("prefix_drift", `the cut ${from}-${to} does not fit into a body of ${body.length}`);
    sequence += body.slice(at, from);
    at = to;
  }
  return sequence + body.slice(at);
}

export interface Recorded {
  /** The prefix of this baseline. */
  prefix: string;
  /** Every recorded message as rendered, joined by the dialect's separator. */
  messages: string;
}

/**
 * Compares an outgoing body with what was recorded (I2). `appended` is what this call adds, rendered.
 * @throws {PrefixDriftError} which part, which byte.
 */
export function guard(
  recorded: Recorded,
  appended: readonly string[],
  separator: string,
  body: string,
  cuts: readonly (readonly [number, number])[],
): void {
  const added = appended.join(separator);
  const joint = recorded.messages !== "" && added !== "" ? separator : "";
  const expected = recorded.prefix + recorded.messages + joint + added;
  const sequence = cachedSequence(body, cuts);
  if (sequence === expected) return;
  const byte = firstDifference(sequence, expected);
  const part = byte < recorded.prefix.length ? "system" : "messages";
  const offset = Buffer.byteLength(expected.slice(0, byte), "utf8");
  throw new PrefixDriftError(
    sequence.length < recorded.prefix.length ? "length" : part,
    offset,
    `${JSON.stringify(sequence.slice(byte, byte + 24))} instead of ${JSON.stringify(expected.slice(byte, byte + 24))}`,
  );
}

/** The first index at which two texts differ. */
export function firstDifference(a: string, b: string): number {
  let low = 0;
  let high = Math.min(a.length, b.length);
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (a.slice(low, middle) === b.slice(low, middle)) low = middle;
    else high = middle - 1;
  }
  return low;
}
