/**
 * The journal of a rig: one row per attempt, kept in a file that every process of the rig appends to, so that what a
 * killed process had begun is still told. A row is two lines, its beginning and its end; a call that was killed has no
 * second one.
 */
import { appendFileSync, closeSync, existsSync, openSync, readFileSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** One call of the model: an attempt of a simple turn is one. */
export interface Row {
  session: string;
  turnId: string;
  step: number;
  /** 1, 2, … of this step, whichever process made it. */
  attempt: number;
  /** The name of the process. */
  worker: string;
  /** Wall clock, milliseconds. */
  startedAt: number;
  /** `null`: it still runs, or its process died. */
  endedAt: number | null;
  prefixSha256: string;
  tailSha256: string;
  /** `null` as `endedAt` is. */
  outcome: "answered" | "failed" | "later" | "aborted" | null;
}

/** Anything else that a process has to tell: a tool that ran, a fault that nobody caught. */
export interface Remark {
  worker: string;
  what: string;
  data: Record<string, unknown>;
}

type Line =
  | ({ line: "start"; id: string } & Omit<Row, "attempt" | "endedAt" | "outcome">)
  | { line: "end"; id: string; endedAt: number; outcome: NonNullable<Row["outcome"]> }
  | ({ line: "remark" } & Remark);

const fileName = "journal.jsonl";
const lookMs = 10;

/** The writing side, in a process of the rig. */
export class JournalWriter {
  readonly #file: string;
  readonly #worker: string;
  #begun = 0;

  constructor(folder: string, worker: string) {
    this.#file = join(folder, fileName);
    this.#worker = worker;
  }

  /** Answers what ends the row. */
  begin(row: Pick<Row, "session" | "turnId" | "step" | "prefixSha256" | "tailSha256">): (outcome: NonNullable<Row["outcome"]>) => void {
    this.#begun += 1;
    const id = `${this.#worker}#${this.#begun}`;
    this.#append({ line: "start", id, worker: this.#worker, startedAt: Date.now(), ...row });
    return (outcome) => this.#append({ line: "end", id, endedAt: Date.now(), outcome });
  }

  remark(what: string, data: Record<string, unknown> = {}): void {
    this.#append({ line: "remark", worker: this.#worker, what, data });
  }

  /** How many attempts of a step were begun so far, in all processes. */
  attempts(session: string, turnId: string, step: number): number {
    return readJournal(this.#file).filter(
      (line) => line.line === "start" && line.session === session && line.turnId === turnId && line.step === step,
    ).length;
  }

  /** At once and in one write: what stands here survives the process, and lines do not mix. */
  #append(line: Line): void {
    appendFileSync(this.#file, `${JSON.stringify(line)}\n`);
  }
}

function readJournal(file: string): Line[] {
  if (!existsSync(file)) return [];
  const text = readFileSync(file, "utf8");
  return text
    .slice(0, text.lastIndexOf("\n") + 1)
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Line);
}

/** The reading side, in the test. */
export class Journal {
  readonly #file: string;
  readonly #rows = new Map<string, Row>();
  readonly #attempts = new Map<string, number>();
  readonly #remarks: Remark[] = [];
  #read = 0;
  #rest = Buffer.alloc(0);

  constructor(folder: string) {
    this.#file = join(folder, fileName);
  }

  /** All rows so far, in the order they began in. */
  rows(filter: { session?: string; turnId?: string } = {}): Row[] {
    this.#catchUp();
    const { session, turnId } = filter;
    return [...this.#rows.values()].filter(
      (row) => (session === undefined || row.session === session) && (turnId === undefined || row.turnId === turnId),
    );
  }

  remarks(what: string): Remark[] {
    this.#catchUp();
    return this.#remarks.filter((remark) => remark.what === what);
  }

  /** Resolves when the condition holds for what the journal says. */
  async until(what: string, condition: (journal: Journal) => boolean, timeoutMs = 20_000): Promise<void> {
    const end = performance.now() + timeoutMs;
    while (!condition(this)) {
      if (performance.now() > end) throw new Error(`the journal does not say within ${timeoutMs} ms: ${what}`);
      await sleep(lookMs);
    }
  }

  #catchUp(): void {
    if (!existsSync(this.#file)) return;
    const fresh = readFrom(this.#file, this.#read);
    this.#read += fresh.length;
    const bytes = Buffer.concat([this.#rest, fresh]);
    const end = bytes.lastIndexOf("\n") + 1;
    this.#rest = bytes.subarray(end);
    for (const text of bytes.subarray(0, end).toString("utf8").split("\n")) if (text !== "") this.#take(JSON.parse(text) as Line);
  }

  #take(line: Line): void {
    if (line.line === "remark") return void this.#remarks.push({ worker: line.worker, what: line.what, data: line.data });
    if (line.line === "end") {
      const row = this.#rows.get(line.id) as Row;
      row.endedAt = line.endedAt;
      row.outcome = line.outcome;
      return;
    }
    const { line: _, id, ...begun } = line;
    const step = JSON.stringify([begun.session, begun.turnId, begun.step]);
    const attempt = (this.#attempts.get(step) ?? 0) + 1;
    this.#attempts.set(step, attempt);
    this.#rows.set(id, { ...begun, attempt, endedAt: null, outcome: null });
  }
}

function readFrom(file: string, position: number): Buffer {
  const length = statSync(file).size - position;
  if (length <= 0) return Buffer.alloc(0);
  const bytes = Buffer.alloc(length);
  const opened = openSync(file, "r");
  try {
    return bytes.subarray(0, readSync(opened, bytes, 0, length, position));
  } finally {
    closeSync(opened);
  }
}
