/**
 * A provider's prompt cache, Anthropic flavour, simulated: what of a prompt is read from it, what is written to it, and
 * for how long. Entries stand at cache marks only; a mark finds an entry at most 20 positions before it, where a run of
 * tool calls, and a run of tool results, is one position.
 */
import { createHash } from "node:crypto";
import type { AnthropicBody, Lifetime, PromptBlock } from "./anthropic-body.ts";

const lookbackPositions = 20;
/** Entries beyond this many are swept for expired ones. */
const sweepAt = 10_000;

/** A block with all that stands before it. */
export interface CacheBlock {
  /** Equal only for the same model, parameters and bytes up to and with this block. */
  key: string;
  /** Tokens up to and with this block. */
  sum: number;
  position: number;
  ttlSeconds: Lifetime | null;
}

/** How a prompt's tokens divide; the four add up to the whole. */
export interface Split {
  read: number;
  write1h: number;
  write5m: number;
  fresh: number;
}

interface CacheEntry {
  ttlMs: number;
  usedAt: number;
  /** Infinity until the answer of the call that wrote it began. */
  readableAt: number;
}

/** Parameters whose change misses everything from that tier on. */
const tierFields = { tool: [], system: ["speed"], messages: ["speed", "tool_choice", "thinking", "output_config"] };

export function cacheBlocks(body: AnthropicBody, blocks: readonly PromptBlock[], count: (text: string) => number): CacheBlock[] {
  let key = body.model;
  let sum = 0;
  let position = 0;
  return blocks.map((block, i) => {
    const run = (block.kind === "tool_use" || block.kind === "tool_result") && blocks[i - 1]?.kind === block.kind;
    key = createHash("sha256")
      .update(`${key}\n${tierParameters(body, block.kind)}\n${block.text}`)
      .digest("base64");
    sum += count(block.text);
    position += run ? 0 : 1;
    return { key, sum, position, ttlSeconds: block.ttlSeconds };
  });
}

function tierParameters(body: AnthropicBody, kind: PromptBlock["kind"]): string {
  const fields = tierFields[kind === "tool" || kind === "system" ? kind : "messages"];
  const values = body as unknown as Record<string, unknown>;
  return JSON.stringify(fields.map((field) => values[field] ?? null));
}

export class PromptCache {
  readonly #entries = new Map<string, CacheEntry>();

  /**
   * Looks a prompt up and stores its marks, not yet readable. `minTokens`: marks nearer to the start than that count for
   * nothing. Answers the split and the keys to pass to `answered`.
   */
  ask(blocks: readonly CacheBlock[], minTokens: number, now: number): { split: Split; keys: string[] } {
    if (this.#entries.size > sweepAt) this.#sweep(now);
    const marks = blocks.flatMap((block, at) =>
      block.ttlSeconds !== null && block.sum >= minTokens ? [{ ...block, at, ttlSeconds: block.ttlSeconds }] : [],
    );
    const hits = marks.flatMap(({ at }) => this.#hit(blocks, at, now) ?? []);
    const read = Math.max(0, ...hits.map((hit) => hit.sum));
    const long = Math.max(read, ...marks.filter((mark) => mark.ttlSeconds === 3600).map((mark) => mark.sum));
    const cached = Math.max(long, marks.at(-1)?.sum ?? 0);
    const whole = blocks.at(-1)?.sum ?? 0;
    for (const hit of hits) this.#touch(hit.key, now);
    for (const mark of marks) this.#store(mark.key, mark.ttlSeconds, now);
    return { split: { read, write1h: long - read, write5m: cached - long, fresh: whole - cached }, keys: marks.map((mark) => mark.key) };
  }

  /** The answer has begun: what this call stored can be read from now on. */
  answered(keys: readonly string[], now: number): void {
    for (const key of keys) {
      const entry = this.#entries.get(key);
      if (entry !== undefined) entry.readableAt = Math.min(entry.readableAt, now);
    }
  }

  /** The newest readable entry within the lookback of the mark at `from`. */
  #hit(blocks: readonly CacheBlock[], from: number, now: number): CacheBlock | undefined {
    const last = blocks[from]?.position ?? 0;
    for (let i = from; i >= 0; i -= 1) {
      const block = blocks[i];
      if (block === undefined || last - block.position >= lookbackPositions) return undefined;
      const entry = this.#alive(block.key, now);
      if (entry !== undefined && entry.readableAt <= now) return block;
    }
    return undefined;
  }

  #alive(key: string, now: number): CacheEntry | undefined {
    const entry = this.#entries.get(key);
    return entry === undefined || now - entry.usedAt > entry.ttlMs ? undefined : entry;
  }

  #touch(key: string, now: number): void {
    const entry = this.#entries.get(key);
    if (entry !== undefined) entry.usedAt = now;
  }

  #store(key: string, ttlSeconds: Lifetime, now: number): void {
    const old = this.#alive(key, now);
    const ttlMs = Math.max(old?.ttlMs ?? 0, ttlSeconds * 1000);
    this.#entries.set(key, { ttlMs, usedAt: now, readableAt: old?.readableAt ?? Number.POSITIVE_INFINITY });
  }

  #sweep(now: number): void {
    for (const key of this.#entries.keys()) if (this.#alive(key, now) === undefined) this.#entries.delete(key);
  }
}
