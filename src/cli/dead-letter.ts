/** `headfast dead-letter`: turns that failed for good, to be looked at, replayed or discarded. */
import type { DeadLetter } from "../host/dead-letters.ts";
import { type Call, type Command, type ExitCode, exit } from "./command.ts";
import { withHost } from "./connect.ts";
import { fields, shownIndented, table } from "./output.ts";
import { redacted, redactedAttempts, redactedCause } from "./redact.ts";
import { limitOf, operator } from "./session.ts";
import { attemptsText } from "./turn.ts";

async function list(call: Call): Promise<ExitCode> {
  const bot = call.options.text("bot");
  const session = call.options.text("session");
  const letters = await withHost(call, (hf) =>
    hf.deadLetters.list({ ...(bot !== undefined && { bot }), ...(session !== undefined && { session }), limit: limitOf(call) }),
  );
  const cells = letters.map((letter) => [
    letter.session,
    letter.turnId,
    String(letter.generation),
    letter.bot,
    letter.deadAt,
    `${letter.waitingBehind}${letter.parks ? " (parked)" : ""}`,
    redacted(`${letter.cause.code}: ${letter.cause.message}`),
  ]);
  call.out.answer(letters.map(withoutSecrets), () =>
    letters.length === 0 ? "no dead letters" : table(["SESSION", "TURN", "GENERATION", "BOT", "DEAD", "BEHIND", "CAUSE"], cells),
  );
  return letters.length === 0 ? exit.nothing : exit.ok;
}

/** What the person said stays as it is. */
function withoutSecrets(letter: DeadLetter): DeadLetter {
  return { ...letter, cause: redactedCause(letter.cause), attempts: redactedAttempts(letter.attempts) };
}

async function show(call: Call): Promise<ExitCode> {
  const [session = "", turnId = ""] = call.args;
  const letter = withoutSecrets(await withHost(call, (hf) => hf.deadLetters.get(session, turnId)));
  call.out.answer(letter, () => letterText(letter));
  return exit.ok;
}

function letterText(letter: DeadLetter): string {
  const head = fields([
    ["session", letter.session],
    ["turn", letter.turnId],
    ["generation", letter.generation],
    ["number", letter.number],
    ["bot", letter.bot],
    ["user", letter.user?.name ?? letter.user?.id],
    ["deliver to", letter.deliverTo],
    ["accepted", letter.acceptedAt],
    ["dead", letter.deadAt],
    ["worker", letter.worker],
    ["crashes", letter.crashes],
    [
      "behind it",
      `${letter.waitingBehind} ${letter.waitingBehind === 1 ? "turn" : "turns"}${letter.parks ? ", waiting for a replay or a discard" : ""}`,
    ],
  ]);
  const cause = `${letter.cause.code}: ${letter.cause.message}${letter.cause.stack === undefined ? "" : `\n${letter.cause.stack}`}`;
  return [head, attemptsText(letter.attempts), shownIndented("", cause), shownIndented("> ", letter.input, "> ")]
    .filter((part) => part !== "")
    .join("\n\n");
}

async function replay(call: Call): Promise<ExitCode> {
  const [session = "", turnId = ""] = call.args;
  const position = call.options.flag("head") ? "head" : "tail";
  const why = call.options.text("why");
  const replayed = await withHost(call, (hf) =>
    hf.deadLetters.replay(session, turnId, { position, by: operator(call), ...(why !== undefined && { why }) }),
  );
  const already = replayed.already ? "it was replayed already: " : "";
  call.out.answer(
    { ...replayed, position },
    () =>
      `${already}generation ${replayed.generation} is turn ${replayed.number} of the session${replayed.inRedis ? "" : "; Redis did not take it, a worker adds it"}`,
  );
  return exit.ok;
}

async function discard(call: Call): Promise<ExitCode> {
  const [session = "", turnId = ""] = call.args;
  const why = call.options.text("why");
  const by = operator(call);
  await withHost(call, (hf) => hf.deadLetters.discard(session, turnId, { by, ...(why !== undefined && { why }) }));
  call.out.answer({ session, turnId, discarded: true, by, why: why ?? null }, () => "discarded");
  return exit.ok;
}

const who = [
  { flag: "--by <who>", text: "Who; kept in the log; default the user of this shell" },
  { flag: "--why <text>", text: "Why; kept in the log" },
];

export const deadLetterCommands: readonly Command[] = [
  {
    name: "dead-letter ls",
    text: "List dead letters, oldest first",
    options: [
      { flag: "--bot <name>", text: "Only this bot's" },
      { flag: "--session <id>", text: "Only this session's" },
      { flag: "--limit <n>", text: "At most so many, 1 to 1000; default 100" },
    ],
    examples: ["headfast dead-letter ls --bot ada"],
    run: list,
  },
  {
    name: "dead-letter show",
    args: "<session> <turn>",
    text: "Cause with stack, attempts, the whole payload, what waits behind it",
    examples: ["headfast dead-letter show tg:42 1712"],
    run: show,
  },
  {
    name: "dead-letter replay",
    args: "<session> <turn>",
    text: "Run the turn again, behind what waits or, with --head, before it; twice is once",
    options: [{ flag: "--head", text: "Before everything that waits" }, ...who],
    examples: ['headfast dead-letter replay tg:42 1712 --head --why "the provider is back"'],
    run: replay,
  },
  {
    name: "dead-letter discard",
    args: "<session> <turn>",
    text: "Decide that it is not replayed; a parked session goes on",
    options: who,
    examples: ['headfast dead-letter discard tg:42 1712 --why "asked again since"'],
    run: discard,
  },
];
