/**
 * An estimate of tokens by a public BPE encoding, not a vendor's own count. The encoding is heavy (half a second, 67 MB),
 * so it is loaded when the first text is counted, and blocks that come again are not counted again.
 */
import { createHash } from "node:crypto";

/** Text is counted in pieces of this many UTF-16 units: one endless word would take quadratic time. */
const pieceUnits = 2_000;
/** Counts kept: some 10 MB. */
const countsMax = 100_000;

export type CountTokens = (text: string) => number;

let loading: Promise<CountTokens> | undefined;

/** The shared counter, ready to use. */
export function tokenCounter(): Promise<CountTokens> {
  loading ??= load();
  return loading;
}

async function load(): Promise<CountTokens> {
  const { countTokens } = await import("gpt-tokenizer/encoding/o200k_base");
  // Text that looks like a special token is counted as what it is: text.
  const options = { disallowedSpecial: new Set<string>() };
  return memoised((text) => {
    let tokens = 0;
    for (let at = 0; at < text.length; at += pieceUnits) tokens += countTokens(text.slice(at, at + pieceUnits), options);
    return tokens;
  });
}

function memoised(count: CountTokens): CountTokens {
  const counts = new Map<string, number>();
  return (text) => {
    const key = createHash("sha256").update(text).digest("base64");
    const known = counts.get(key);
    if (known !== undefined) return known;
    const [oldest] = counts.keys();
    if (counts.size >= countsMax && oldest !== undefined) counts.delete(oldest);
    const tokens = count(text);
    counts.set(key, tokens);
    return tokens;
  };
}
