/** The whole command: parse, run, and turn whatever happens into an exit code. */
import { createRequire } from "node:module";
import { parse } from "./arguments.ts";
import { chatCommands } from "./chat.ts";
import { type Command, type ExitCode, exit } from "./command.ts";
import { deadLetterCommands } from "./dead-letter.ts";
import { doctorCommands } from "./doctor.ts";
import { tellFailure } from "./failure.ts";
import { inboxCommands } from "./inbox.ts";
import type { Io } from "./io.ts";
import { memoryCommands } from "./memory.ts";
import { Output } from "./output.ts";
import { prefixCommands } from "./prefix.ts";
import { sessionCommands } from "./session.ts";
import { turnCommands } from "./turn.ts";
import { workerCommands } from "./worker.ts";

export const commands: readonly Command[] = [
  ...chatCommands,
  ...workerCommands,
  ...sessionCommands,
  ...turnCommands,
  ...deadLetterCommands,
  ...inboxCommands,
  ...memoryCommands,
  ...prefixCommands,
  ...doctorCommands,
];

/** Runs one command line. Never rejects. */
export async function run(argv: readonly string[], io: Io): Promise<ExitCode> {
  const json = argv.includes("--json");
  const out = new Output(io, json);
  try {
    const parsed = parse(argv, commands);
    if ("help" in parsed) return say(out, parsed.help);
    if ("version" in parsed) return say(out, version());
    return await parsed.command.run({ args: parsed.args, options: parsed.options, out, io });
  } catch (error) {
    return tellFailure(error, io, json);
  }
}

function say(out: Output, text: string): ExitCode {
  out.raw(`${text}\n`);
  return exit.ok;
}

/** Of this package; the same two folders up from the source and from what is built of it. */
export function version(): string {
  return (createRequire(import.meta.url)("../../package.json") as { version: string }).version;
}
