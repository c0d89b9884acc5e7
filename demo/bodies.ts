/**
 * The raw bodies that the model got, as each worker process appended them to a file of its own. They are read here
 * without the code that made them: cache marks are cut out of the text, and the prefix ends where the messages begin.
 */
import { createHash } from "node:crypto";
import { appendFileSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** What a bot that rebuilds its system prompt on each request would have put into it at that moment. */
export interface NaiveView {
  persona: string;
  /** Files with times, one a line. */
  listing: string;
}

export interface SentBody {
  worker: string;
  session: string;
  turnId: string;
  step: number;
  /** Milliseconds since 1970. One machine, so it orders calls of one session. */
  at: number;
  body: string;
  naive?: NaiveView;
}

const suffix = ".bodies.jsonl";

/** Appends one line, whole, before the call is answered: a worker that is killed in it leaves it behind. */
export function recordBody(folder: string, sent: SentBody): void {
  appendFileSync(join(folder, `${sent.worker}${suffix}`), `${JSON.stringify(sent)}\n`);
}

/** All that any worker sent so far, in the order of their times. */
export function readBodies(folder: string): SentBody[] {
  const files = readdirSync(folder).filter((name) => name.endsWith(suffix));
  const lines = files.flatMap((name) => readFileSync(join(folder, name), "utf8").split("\n"));
  const bodies = lines.flatMap((line) => (line.endsWith("}") ? [JSON.parse(line) as SentBody] : []));
  return bodies.sort((a, b) => a.at - b.at);
}

/** Unescaped quotes: such text cannot stand inside a JSON string. */
const cacheMark = /,"cache_control":\{"type":"ephemeral"(,"ttl":"1h")?\}/g;
const messagesOpen = '"messages":[';

/** The bytes that a provider's cache sees: tools, system and messages, without cache marks, parameters and the closing brackets. */
export function sequenceOf(body: string): string {
  const plain = body.replace(cacheMark, "");
  const starts = ['"tools":[', '"system":[', messagesOpen].map((open) => plain.indexOf(open)).filter((at) => at >= 0);
  return plain.slice(Math.min(...starts), plain.length - "]}".length);
}

/** Everything before the first message. */
export function prefixTextOf(body: string): string {
  const sequence = sequenceOf(body);
  return sequence.slice(0, sequence.indexOf(messagesOpen) + messagesOpen.length);
}

export function sha256(text: string): string {
  return createHash("sha256").update(text, "utf8").digest("hex");
}

/** The different hashes of what stood before the first message in these bodies. */
export function prefixHashes(bodies: readonly SentBody[]): string[] {
  return [...new Set(bodies.map(({ body }) => sha256(prefixTextOf(body))))];
}

/** The length in bytes of what two texts begin with in common. */
export function commonBytes(a: string, b: string): number {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  const end = Math.min(left.length, right.length);
  let at = 0;
  while (at < end && left[at] === right[at]) at += 1;
  return at;
}
