/**
 * Matches a pattern in a thread of its own. A model's pattern may take exponential time, which would stop every session of
 * the worker; here it stops the thread's own search, after `limits.toolPatternMsMax`.
 */
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { HeadfastError } from "../domain/errors.ts";
import { limits } from "../domain/limits.ts";
import { toolFailed } from "./memory-text.ts";

/** Plain JavaScript as text: it needs no loader, whether Headfast runs from its sources or from its build. */
const program = `
const { parentPort, workerData } = require("node:worker_threads");
const { createContext, Script } = require("node:vm");
const context = createContext({ regex: new RegExp(workerData.source, workerData.flags), items: [] });
const search = new Script("((regex, items) => items.flatMap((item, i) => (regex.test(item) ? [i] : [])))(regex, items)");
parentPort.on("message", (items) => {
  context.items = items;
  try {
    parentPort.postMessage({ found: search.runInContext(context, { timeout: workerData.ms }) });
  } catch (error) {
    parentPort.postMessage({ failed: error.code === "ERR_SCRIPT_EXECUTION_TIMEOUT" ? "timeout" : String(error.message) });
  }
});`;

type Answer = { found: number[] } | { failed: string };

/** One pattern, one thread; `close` ends it. */
export class RegexThread {
  readonly #worker: Worker;
  /** Why the thread is gone, if it is: told to whoever asks next. */
  #failure: Error | undefined;

  /** @throws {HeadfastError} `tool_failed` for what is no regular expression. */
  constructor(source: string, flags: string) {
    checkRegex(source, flags);
    this.#worker = new Worker(program, {
      eval: true,
      execArgv: [],
      env: {},
      workerData: { source, flags, ms: limits.toolPatternMsMax },
      resourceLimits: { maxOldGenerationSizeMb: 128 },
    });
    this.#worker.on("error", (error: Error) => {
      this.#failure = error;
    });
  }

  /** The indexes of the items that match. One call at a time. @throws `tool_failed` if it takes too long; what aborts the signal. */
  async match(items: readonly string[], signal: AbortSignal): Promise<number[]> {
    signal.throwIfAborted();
    const answer = await this.#ask(items, signal);
    if ("found" in answer) return answer.found;
    throw toolFailed(
      answer.failed === "timeout"
        ? `the pattern took longer than ${limits.toolPatternMsMax} ms; use a simpler one`
        : `the pattern failed: ${answer.failed}`,
    );
  }

  async #ask(items: readonly string[], signal: AbortSignal): Promise<Answer> {
    try {
      if (this.#failure !== undefined) throw this.#failure;
      const answered = once(this.#worker, "message", { signal });
      this.#worker.postMessage(items);
      const [answer] = (await answered) as [Answer];
      return answer;
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      throw new HeadfastError("tool_failed", `the search failed: ${(error as Error).message}`, { cause: error });
    }
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }
}

function checkRegex(source: string, flags: string): void {
  try {
    new RegExp(source, flags);
  } catch (error) {
    throw toolFailed(`the pattern is not a regular expression: ${(error as Error).message}`);
  }
}
