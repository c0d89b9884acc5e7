/**
 * Running the tool calls of a recorded step. A tool runs at least once, only after the step that asks for it has its
 * majority, and only while the lease stands (rule 10). Whatever goes wrong inside becomes an error result: the model,
 * not the turn, deals with it. Writes are journalled before a file is touched.
 */
import { createHash } from "node:crypto";
import { asHeadfastError, HeadfastError } from "../domain/errors.ts";
import { insertOnce } from "../domain/insert-once.ts";
import { limits } from "../domain/limits.ts";
import type { Message, ToolCall, ToolResult } from "../domain/messages.ts";
import { mergeWrote } from "../domain/net-change.ts";
import type { Bot, Ledger, MemoryRepository, ToolContext, ToolMemory, ToolSpec } from "../domain/ports.ts";
import type { Turn, WriteIntent, Wrote } from "../domain/records.ts";
import { recordVersion } from "../domain/records.ts";
import { withTimeout } from "./timeout.ts";

export interface ToolRun {
  ledger: Ledger;
  bot: Bot;
  /** What the prefix was frozen with. */
  frozen: ReadonlySet<string>;
  turn: Turn;
  step: number;
  /** What the session wrote since it last heard, before these calls. */
  wrote: readonly Wrote[];
  /** Whether another activation may have begun these calls: then the journal is asked for what it left behind. */
  resumed: boolean;
  signal: AbortSignal;
  onCall(type: "tool.started" | "tool.finished", call: ToolCall, data: Record<string, unknown>): void;
}

/** Runs the calls in the order they stand in. Resolves with their results and what the session has written by then. */
export async function runTools(run: ToolRun, calls: readonly ToolCall[]): Promise<{ message: Message; wrote: readonly Wrote[] }> {
  const results: ToolResult[] = [];
  let wrote = run.wrote;
  for (const [index, call] of calls.entries()) {
    run.signal.throwIfAborted();
    run.onCall("tool.started", call, { tool: call.name });
    const memory = new CallMemory(run, callIdOf(run, index), wrote);
    const { result, cutBytes } = await runOne(run, call, memory);
    wrote = memory.wrote;
    run.signal.throwIfAborted();
    run.onCall("tool.finished", call, { tool: call.name, is_error: result.isError, ...(cutBytes > 0 && { cut_bytes: cutBytes }) });
    results.push(result);
  }
  return { message: { role: "tool", results }, wrote };
}

/** Stable across crashes and workers, and different for every call of a session. */
export function callIdOf({ turn, step }: Pick<ToolRun, "turn" | "step">, index: number): string {
  const identity = JSON.stringify([turn.session, turn.turnId, turn.generation, step, index]);
  return `call_${createHash("sha256").update(identity).digest("hex").slice(0, 32)}`;
}

/** A result within its limit, and how many bytes of the tool's answer it lacks. */
interface Bounded {
  result: ToolResult;
  cutBytes: number;
}

async function runOne(run: ToolRun, call: ToolCall, memory: CallMemory): Promise<Bounded> {
  try {
    const text = await callTool(run, call, memory);
    if (run.resumed && run.bot.memory !== null) await memory.recall();
    return bounded(call, text, false);
  } catch (error) {
    if (run.signal.aborted) throw run.signal.reason;
    const ours = asHeadfastError(error);
    if (ours.code !== "store_unavailable" && run.bot.memory !== null) await memory.recall();
    if (ours.code === "store_unavailable") throw ours; // an outage is not the tool's failure (I12)
    return bounded(call, ours.message || "the tool failed", true);
  }
}

async function callTool(run: ToolRun, call: ToolCall, memory: CallMemory): Promise<string> {
  const tool = run.bot.tools.find((known) => known.name === call.name);
  if (!run.frozen.has(call.name)) throw new HeadfastError("tool_failed", `there is no tool ${JSON.stringify(call.name)}`);
  if (tool === undefined) throw new HeadfastError("tool_failed", `the tool ${JSON.stringify(call.name)} is not available any more`);
  const context: ToolContext = {
    signal: run.signal,
    callId: memory.callId,
    session: run.turn.session,
    turnId: run.turn.turnId,
    bot: run.bot.name,
    ...(run.turn.user === undefined ? {} : { user: run.turn.user }),
    ...(run.bot.memory === null ? {} : { memory }),
  };
  const args = parseArguments(call);
  return withTimeout(
    run.ledger.system,
    limits.toolMsMax,
    run.signal,
    (signal) => tool.run(args, { ...context, signal }),
    () => new HeadfastError("tool_failed", `the tool did not finish within ${limits.toolMsMax} ms`),
  );
}

function parseArguments(call: ToolCall): unknown {
  if (Buffer.byteLength(call.arguments) > limits.toolArgumentsBytesMax)
    throw new HeadfastError("tool_failed", `the arguments exceed ${limits.toolArgumentsBytesMax} bytes`);
  try {
    return call.arguments.trim() === "" ? {} : (JSON.parse(call.arguments) as unknown);
  } catch (error) {
    throw new HeadfastError("tool_failed", "the arguments are not valid JSON", { cause: error });
  }
}

/** Well-formed, not empty, within `limits.toolResultBytesMax`, cut at a character: the model is told, and so is the host. */
function bounded({ id }: ToolCall, text: unknown, isError: boolean): Bounded {
  const whole = (typeof text === "string" ? text : JSON.stringify(text ?? null)).toWellFormed();
  const bytes = Buffer.from(whole);
  if (bytes.length <= limits.toolResultBytesMax)
    return { result: { id, text: whole === "" ? "(no output)" : whole, isError }, cutBytes: 0 };
  let end = limits.toolResultBytesMax - 100;
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  const cutBytes = bytes.length - end;
  const kept = bytes.toString("utf8", 0, end);
  return { result: { id, text: `${kept}\n[cut: ${cutBytes} of ${bytes.length} bytes are left out]`, isError }, cutBytes };
}

/** One call's access to the Memory Repository: reads as they are, writes journalled and remembered. */
class CallMemory implements ToolMemory {
  readonly callId: string;
  wrote: readonly Wrote[];
  #writes = 0;
  readonly #run: ToolRun;

  constructor(run: ToolRun, callId: string, wrote: readonly Wrote[]) {
    this.#run = run;
    this.callId = callId;
    this.wrote = wrote;
  }

  get #memory(): MemoryRepository {
    const { memory } = this.#run.bot;
    if (memory === null) throw new HeadfastError("tool_failed", "the bot has no Memory Repository");
    return memory;
  }

  get files(): ToolMemory["files"] {
    return this.#memory.files;
  }

  async write(path: string, bytes: Uint8Array): Promise<void> {
    if (this.#writes >= limits.pathsWrittenMax)
      throw new HeadfastError("tool_failed", `one call may write ${limits.pathsWrittenMax} times`);
    const now = await this.#memory.blobNow(path);
    const after = await this.#memory.blobOf(path, bytes);
    const intent = await this.#intend(path, now, after);
    const accepted = intent.before === intent.after ? [intent.after] : [intent.after, intent.before];
    if (now === after && intent.after === after && intent.path === path) {
      this.#remember(path, [after]); // done before a crash, or nothing to change
      return;
    }
    if (now !== intent.before || intent.after !== after || intent.path !== path) {
      this.#remember(intent.path, accepted);
      throw new HeadfastError("tool_failed", `${path} was changed by somebody else while this call was interrupted; read it again`);
    }
    this.#run.signal.throwIfAborted();
    this.#remember(path, accepted); // from here on either may be found
    await this.#memory.files.write(path, bytes);
    this.#remember(path, [after]);
  }

  /** Whether this call's next write was made before a crash: then its result is known, and the call goes on behind it. */
  async resumed(path: string): Promise<boolean> {
    const intent = await this.#run.ledger.store.journal.get(this.#run.turn.session, this.callId, this.#writes);
    if (intent === undefined || intent.path !== path || (await this.#memory.blobNow(path)) !== intent.after) return false;
    this.#writes += 1;
    this.#remember(path, [intent.after]);
    return true;
  }

  /** What an earlier, interrupted run of this call wrote or may have written, where this run did not come that far. */
  async recall(): Promise<void> {
    const intents = await this.#run.ledger.store.journal.ofCall(this.#run.turn.session, this.callId);
    for (const { path, before, after } of intents.slice(this.#writes)) this.#remember(path, [after, before]);
  }

  /** The first intent of this write stands: a repeat after a crash finds it. */
  async #intend(path: string, before: string | null, after: string): Promise<WriteIntent> {
    const { turn, ledger } = this.#run;
    const intent: WriteIntent = { v: recordVersion, session: turn.session, callId: this.callId, index: this.#writes, path, before, after };
    this.#writes += 1;
    const { journal } = ledger.store;
    return (
      (await insertOnce(
        ledger.system,
        () => journal.insert(intent),
        () => journal.get(turn.session, this.callId, intent.index),
      )) ?? intent
    );
  }

  #remember(path: string, blobs: (string | null)[]): void {
    this.wrote = mergeWrote(this.wrote, [{ path, blobs }]);
  }
}

/** `written`, and what an interrupted step may have written: for a turn that is closed without running it again. */
export async function withJournalled(
  written: readonly Wrote[],
  ledger: Ledger,
  turn: Turn,
  step: number,
  calls: readonly ToolCall[],
): Promise<readonly Wrote[]> {
  let wrote = written;
  for (const index of calls.keys()) {
    const intents = await ledger.store.journal.ofCall(turn.session, callIdOf({ turn, step }, index));
    wrote = mergeWrote(
      wrote,
      intents.map(({ path, before, after }) => ({ path, blobs: [after, before] })),
    );
  }
  return wrote;
}

export function toolNames(tools: readonly ToolSpec[]): Set<string> {
  return new Set(tools.map((tool) => tool.name));
}
