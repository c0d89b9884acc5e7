/** `headfast chat`: a conversation in the terminal or over a pipe, one line a turn. */
import { existsSync } from "node:fs";
import { userInfo } from "node:os";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { HeadfastError } from "../domain/errors.ts";
import type { Bot } from "../domain/ports.ts";
import { Headfast, trialBot } from "../main.ts";
import { ChatSession } from "./chat-session.ts";
import { ChatView } from "./chat-view.ts";
import { type Call, type Command, type ExitCode, exit } from "./command.ts";
import { botNamed, configuredBots } from "./config-file.ts";
import { placeOf, remarks } from "./connect.ts";
import { exampleMemory } from "./example-memory.ts";
import { UsageError } from "./usage.ts";

/** The name of the bot that is there without a config. */
const trialName = "assistant";

interface Cast {
  bots: readonly Bot[];
  bot: Bot;
  /** The repository's folder, where this command chose it. */
  memory: string | null;
  dispose(): void;
}

async function chat(call: Call): Promise<ExitCode> {
  const place = placeOf(call);
  const cast = await castOf(call, place?.namespace);
  try {
    const settings = { bots: cast.bots, drainMs: 0, logger: remarks(call.out) };
    const hf = await Headfast.start(place === undefined ? settings : { ...place, ...settings });
    try {
      return await converse(call, hf, cast, place !== undefined);
    } finally {
      await hf.close();
    }
  } finally {
    cast.dispose();
  }
}

/** The config's bot, else the small assistant with the named repository or an example. */
async function castOf(call: Call, durableIn: string | undefined): Promise<Cast> {
  const named = call.options.text("bot");
  const folder = call.options.text("memory");
  const bots = await configuredBots(call);
  if (bots !== undefined) {
    if (folder !== undefined) throw new UsageError("--memory goes without a config: there the config names the repository");
    if (named === undefined && bots.length > 1)
      throw new UsageError(`the config has ${bots.length} bots: --bot ${bots.map(({ name }) => name).join(" or --bot ")}`);
    return { bots, bot: botNamed(bots, named ?? (bots[0] as Bot).name), memory: null, dispose: () => undefined };
  }
  if (named !== undefined && named !== trialName)
    throw new HeadfastError(
      "bot_not_found",
      `without a config there is only the bot ${JSON.stringify(trialName)}; ${JSON.stringify(named)} needs --config`,
    );
  if (folder !== undefined && !existsSync(resolve(call.io.cwd, folder)))
    throw new UsageError(`--memory ${folder}: there is no such folder`);
  const memory =
    folder === undefined ? exampleMemory(call.io.env, durableIn) : { path: resolve(call.io.cwd, folder), dispose: () => undefined };
  const bot = trialBot(trialName, memory.path);
  return { bots: [bot], bot, memory: memory.path, dispose: memory.dispose };
}

async function converse(call: Call, hf: Headfast, cast: Cast, durable: boolean): Promise<ExitCode> {
  const user = call.options.text("user") ?? userInfo().username;
  const session = call.options.text("session") ?? `chat:${cast.bot.name}:${user}`;
  const view = new ChatView(call.io, call.out);
  view.remark(`bot ${cast.bot.name}, session ${session}, ${durable ? "durable" : "in memory"}`);
  if (cast.memory !== null)
    view.remark(`Memory Repository: ${cast.memory}${call.options.text("memory") === undefined ? " (an example)" : ""}`);
  const conversation = await ChatSession.open(hf, cast.bot, { session, user }, view);
  try {
    await conversation.resume();
    await readLines(call, conversation, view);
  } finally {
    await conversation.close();
  }
  if (call.out.json) call.out.answer({ session, bot: cast.bot.name, durable, turns: conversation.told }, () => "");
  return conversation.failed ? exit.failed : exit.ok;
}

/** One line after the other: the next is read when the answer is there. */
async function readLines(call: Call, conversation: ChatSession, view: ChatView): Promise<void> {
  const { stdin, stdout } = call.io;
  const terminal = stdin.isTTY === true && stdout.isTTY === true && !call.out.json;
  const lines = createInterface(terminal ? { input: stdin, output: stdout, prompt: "you> " } : { input: stdin });
  if (terminal) view.remark("a line is a turn; /help says more, /exit ends");
  lines.on("SIGINT", () => {
    view.remark(conversation.busy ? "ended; a durable session goes on with the next chat or worker" : "");
    lines.close();
    conversation.leave();
  });
  if (terminal) lines.prompt();
  for await (const line of lines) {
    if (!(await conversation.hear(line))) break;
    if (terminal) lines.prompt();
  }
  lines.close();
}

export const chatCommands: readonly Command[] = [
  {
    name: "chat",
    text: "Talk to a bot: in memory without URLs, durable with them; a line of stdin is a turn",
    options: [
      { flag: "--bot <name>", text: "One of the config's bots; without a config a small scripted assistant" },
      { flag: "--session <id>", text: "Default chat:BOT:USER: the same again goes on with the same conversation" },
      { flag: "--memory <dir>", text: "The assistant's Memory Repository; default an example" },
      { flag: "--user <id>", text: "Who speaks; default the user of this shell" },
    ],
    examples: [
      "headfast chat --memory ./memory",
      "echo 'who are you' | headfast chat",
      "headfast chat --config headfast.config.mjs --bot ada --redis redis://127.0.0.1:6379 --mongo mongodb://127.0.0.1:27017",
    ],
    run: chat,
  },
];
