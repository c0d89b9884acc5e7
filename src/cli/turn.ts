/** `headfast turn`: the state of one turn, waiting for it, ending it. */
import type { Turn } from "../domain/records.ts";
import type { Ended } from "../host/turn-watch.ts";
import { type Call, type Command, type ExitCode, exit } from "./command.ts";
import { withHost } from "./connect.ts";
import { fields, shownIndented, shownLines, table } from "./output.ts";
import { redactedAttempts, redactedCause } from "./redact.ts";

function nameOf({ args, options }: Call): { session: string; turnId: string; generation?: number } {
  const [session = "", turnId = ""] = args;
  const generation = options.whole("generation", { min: 0 });
  return { session, turnId, ...(generation !== undefined && { generation }) };
}

async function show(call: Call): Promise<ExitCode> {
  const found = await withHost(call, (hf) => hf.turns.get(nameOf(call)));
  const turn = { ...found.turn, attempts: redactedAttempts(found.turn.attempts) };
  const { state } = found;
  const ended = found.ended && withoutSecrets(found.ended);
  call.out.answer({ ...turnView(turn), state, ...(ended && endedView(ended)) }, () => turnText(turn, state, ended));
  return exit.ok;
}

function withoutSecrets(ended: Ended): Ended {
  return { ...ended, cause: ended.cause && redactedCause(ended.cause) };
}

function turnView({
  session,
  turnId,
  generation,
  number,
  bot,
  input,
  user,
  deliverTo,
  replay,
  acceptedAt,
  attempts,
  attemptsSpent,
  crashes,
  dueAt,
  cancelMark,
}: Turn): Record<string, unknown> {
  return {
    session,
    turnId,
    generation,
    number,
    bot,
    input,
    user: user ?? null,
    deliverTo: deliverTo ?? null,
    replay: replay ?? null,
    acceptedAt,
    attempts,
    attemptsSpent,
    crashes,
    dueAt,
    cancelMark,
  };
}

function endedView({ outcome, text, cause, reason }: Ended): Record<string, unknown> {
  return { outcome, text, cause, reason };
}

function turnText(turn: Turn, state: string, ended: Ended | undefined): string {
  const lines = fields([
    ["session", turn.session],
    ["turn", turn.turnId],
    ["generation", turn.generation],
    ["number", turn.number],
    ["state", ended === undefined ? state : `${ended.outcome}${ended.reason === null ? "" : ` (${ended.reason})`}`],
    ["accepted", turn.acceptedAt],
    ["user", turn.user?.name ?? turn.user?.id],
    ...(turn.replay === undefined
      ? []
      : [["replayed by", `${turn.replay.by}${turn.replay.why === null ? "" : `: ${turn.replay.why}`}`] as const]),
    ["attempts spent", turn.attemptsSpent],
    ["crashes", turn.crashes],
  ]);
  const said = ended === undefined ? [] : [ended.cause === null ? ended.text : `${ended.cause.code}: ${ended.cause.message}`];
  return [lines, attemptsText(turn.attempts), shownIndented("> ", turn.input, "> "), ...said.map((text) => shownIndented("  ", text))]
    .filter((part) => part !== "")
    .join("\n\n");
}

/** The attempts as a table; nothing where there were none. */
export function attemptsText(attempts: Turn["attempts"]): string {
  if (attempts.length === 0) return "";
  const cells = attempts.map(({ number, startedAt, endedAt, worker, error }) => [
    String(number),
    startedAt,
    endedAt,
    worker,
    `${error.code}: ${error.message}`,
  ]);
  return table(["ATTEMPT", "STARTED", "ENDED", "WORKER", "ERROR"], cells);
}

async function wait(call: Call): Promise<ExitCode> {
  const timeoutMs = call.options.whole("timeout-ms", { min: 1 });
  const ended = withoutSecrets(await withHost(call, (hf) => hf.turns.wait(nameOf(call), timeoutMs === undefined ? {} : { timeoutMs })));
  const { session, turnId, generation, outcome, text, cause, reason } = ended;
  call.out.answer({ session, turnId, generation, ...endedView(ended) }, () =>
    shownLines(
      outcome === "done"
        ? text
        : `${outcome}${reason === null ? "" : ` (${reason})`}${cause === null ? "" : `: ${cause.code}: ${cause.message}`}`,
    ),
  );
  return outcome === "done" ? exit.ok : exit.failed;
}

async function cancel(call: Call): Promise<ExitCode> {
  const name = nameOf(call);
  const { outcome } = await withHost(call, (hf) => hf.turns.cancel(name));
  const said =
    outcome === null
      ? "asked: the worker that runs it ends it at its next step"
      : outcome === "cancelled"
        ? "cancelled"
        : `it had its outcome already: ${outcome}`;
  call.out.answer({ ...name, outcome }, () => said);
  return outcome === null || outcome === "cancelled" ? exit.ok : exit.failed;
}

const generation = { flag: "--generation <n>", text: "Another generation than the latest" };

export const turnCommands: readonly Command[] = [
  {
    name: "turn show",
    args: "<session> <turn>",
    text: "State or outcome of one turn, with its attempts",
    options: [generation],
    examples: ["headfast turn show tg:42 1712"],
    run: show,
  },
  {
    name: "turn wait",
    args: "<session> <turn>",
    text: "Wait for the outcome and print the answer; exit 0 only where it is done",
    options: [{ flag: "--timeout-ms <ms>", text: "Give up waiting; the turn goes on" }, generation],
    examples: ["headfast turn wait tg:42 1712 --timeout-ms 30000"],
    run: wait,
  },
  {
    name: "turn cancel",
    args: "<session> <turn>",
    text: "End a turn that waits or runs",
    options: [generation],
    examples: ["headfast turn cancel tg:42 1712"],
    run: cancel,
  },
];
