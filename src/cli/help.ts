/** What `--help` says: of the whole, of a noun, of one command. */
import type { Command, OptionSpec } from "./command.ts";

/** Options of every command. */
export const commonOptions: readonly OptionSpec[] = [
  { flag: "--redis <url>", text: "Redis; default HEADFAST_REDIS_URL" },
  { flag: "--mongo <url>", text: "MongoDB; default HEADFAST_MONGO_URL" },
  { flag: "--namespace <name>", text: "The deployment; default HEADFAST_NAMESPACE, else headfast" },
  { flag: "--config <file>", text: "A module that exports `bots`; default ./headfast.config.mjs" },
  { flag: "--json", text: "One JSON value on stdout" },
];

/** As typed: the name and the arguments. */
export function usageOf({ name, args }: Command): string {
  return args === undefined ? name : `${name} ${args}`;
}

export function wholeHelp(commands: readonly Command[]): string {
  const title = "headfast: long-lived AI bot sessions on BullMQ and MongoDB";
  const end = "Every command has --help with an example. Exit codes: 0 ok, 1 failed, 2 usage, 3 nothing found, 4 degraded.";
  return `${list(title, commands)}\n\n${end}`;
}

/** Of the verbs of one noun. */
export function nounHelp(noun: string, commands: readonly Command[]): string {
  return list(
    `headfast ${noun}`,
    commands.filter(({ name }) => name.startsWith(`${noun} `)),
  );
}

export function commandHelp(command: Command): string {
  const own = command.options ?? [];
  const usage = `headfast ${usageOf(command)}${own.length > 0 ? " [options]" : ""}`;
  const sections = [`${usage}\n\n${command.text}`];
  if (own.length > 0) sections.push(`Options:\n${aligned(own.map(({ flag, text }) => [flag, text]))}`);
  sections.push(`Options of every command:\n${commonLines()}`);
  sections.push(`Examples:\n${command.examples.map((example) => `  ${example}`).join("\n")}`);
  return sections.join("\n\n");
}

function list(title: string, commands: readonly Command[]): string {
  const lines = aligned(commands.map((command) => [`headfast ${usageOf(command)}`, command.text]));
  return `${title}\n\n${lines}\n\nOptions of every command:\n${commonLines()}`;
}

function commonLines(): string {
  return aligned(commonOptions.map(({ flag, text }) => [flag, text]));
}

function aligned(pairs: readonly (readonly [string, string])[]): string {
  const width = Math.max(...pairs.map(([left]) => left.length));
  return pairs.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`).join("\n");
}
