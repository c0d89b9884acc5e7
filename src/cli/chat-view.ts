/** What a chat shows: answers on stdout as they come, everything else on stderr; with `--json` nothing until the end. */
import { createColors } from "picocolors";
import type { TurnEvent } from "../domain/ports.ts";
import type { Entry } from "../domain/records.ts";
import type { Ended } from "../host/turn-watch.ts";
import type { Io } from "./io.ts";
import { type Output, shown, shownLines } from "./output.ts";

/** After these the next text is another model call's. */
const newCall: ReadonlySet<TurnEvent["type"]> = new Set(["turn.started", "turn.retrying", "tool.started"]);

export class ChatView {
  readonly #io: Io;
  readonly #out: Output;
  readonly #dim: (text: string) => string;
  /** The text of the current model call, as far as it was shown. */
  #streamed = "";
  /** The last line on stdout has no end yet. */
  #midLine = false;

  constructor(io: Io, out: Output) {
    this.#io = io;
    this.#out = out;
    this.#dim = createColors(io.stderr.isTTY === true && io.env.NO_COLOR === undefined).dim;
  }

  remark(text: string): void {
    this.#endLine();
    if (text !== "") this.#out.remark(this.#dim(`· ${shownLines(text)}`));
  }

  event({ type, data }: TurnEvent): void {
    if (newCall.has(type)) this.#streamed = "";
    if (type === "message.delta") this.#delta(String(data.text ?? ""));
    if (type === "tool.started") this.remark(`tool ${shown(String(data.tool))} …`);
    if (type === "tool.finished" && data.is_error === true) this.remark(`tool ${shown(String(data.tool))} answered with an error`);
    if (type === "turn.retrying") this.remark(`${shown(String(data.code))}: tried again in ${Math.ceil(Number(data.after_ms) / 1000)} s`);
  }

  /** What a step told the model besides the input. */
  told(entry: Entry): void {
    for (const message of entry.messages) {
      if (message.role !== "user") continue;
      for (const block of message.blocks) if (block.type !== "input") this.remark(`${block.type}: ${block.text}`);
    }
  }

  /** The end of a turn. Deltas may be lost or stem from an attempt that failed: what was not shown is shown now. */
  ended({ outcome, text, cause, reason }: Ended): void {
    if (outcome !== "done")
      this.remark(
        `the turn is ${outcome}${reason === null ? "" : ` (${reason})`}${cause === null ? "" : `: ${cause.code}: ${cause.message}`}`,
      );
    else if (this.#streamed !== text) {
      this.#endLine();
      this.#delta(text);
    }
    this.#endLine();
    this.#streamed = "";
  }

  prefix(text: string): void {
    this.#endLine();
    this.#write(`${text}\n`);
  }

  #delta(text: string): void {
    this.#write(text);
    this.#streamed += text;
    this.#midLine = !text.endsWith("\n");
  }

  #endLine(): void {
    if (this.#midLine) this.#write("\n");
    this.#midLine = false;
  }

  #write(text: string): void {
    if (this.#out.json) return;
    this.#out.raw(this.#io.stdout.isTTY ? shownLines(text) : text);
  }
}
