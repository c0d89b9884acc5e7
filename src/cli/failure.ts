/** How a command fails: one line on stderr or one JSON object on stdout, and the exit code that its code stands for. */
import { asHeadfastError, type ErrorCode } from "../domain/errors.ts";
import { type ExitCode, exit } from "./command.ts";
import type { Io } from "./io.ts";
import { shown, snake } from "./output.ts";
import { redacted } from "./redact.ts";

const exitCodes: Partial<Record<ErrorCode, ExitCode>> = {
  invalid_input: exit.usage,
  invalid_id: exit.usage,
  input_too_large: exit.usage,
  services_missing: exit.usage,
  configuration: exit.usage,
  session_not_found: exit.nothing,
  turn_not_found: exit.nothing,
  dead_letter_not_found: exit.nothing,
  bot_not_found: exit.nothing,
};

/** Says what went wrong, without secrets; with the stack only where HEADFAST_DEBUG=1. */
export function tellFailure(error: unknown, io: Io, json: boolean): ExitCode {
  const ours = asHeadfastError(error);
  const message = redacted(ours.message);
  if (json) io.stdout.write(`${JSON.stringify({ error: JSON.parse(redacted(JSON.stringify(snake(ours.toJSON())))) as unknown })}\n`);
  else io.stderr.write(`headfast: ${ours.code}: ${shown(message.replace(/\s*\n\s*/gu, " "))}\n`);
  if (io.env.HEADFAST_DEBUG === "1") io.stderr.write(`${redacted(stacksOf(error))}\n`);
  return exitCodes[ours.code] ?? exit.failed;
}

/** The stack of an error and of its causes. */
function stacksOf(error: unknown): string {
  const stacks: string[] = [];
  for (let at: unknown = error; at !== undefined && stacks.length < 10; at = at instanceof Error ? at.cause : undefined) {
    stacks.push(at instanceof Error ? (at.stack ?? at.message) : String(at));
  }
  return stacks.join("\ncaused by: ");
}
