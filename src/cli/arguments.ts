/**
 * The command line → a command and its arguments, by cac. Ids are any text (`-100123`, `007`, `1e3`): cac would read some
 * as numbers or options, so every value is sealed by a first character before it parses and unsealed afterwards.
 */
import { type CAC, cac } from "cac";
import type { Command, OptionSpec } from "./command.ts";
import { commandHelp, commonOptions, nounHelp, usageOf, wholeHelp } from "./help.ts";
import { Options } from "./options.ts";
import { didYouMean, UsageError } from "./usage.ts";

export type Parsed = { help: string } | { version: true } | { command: Command; args: string[]; options: Options };

const seal = "\u0001";

/** @throws {UsageError} for what no command has, with what may have been meant */
export function parse(argv: readonly string[], commands: readonly Command[]): Parsed {
  const { words, flags } = sealed(argv, commands);
  const [first] = words;
  if (first === undefined) return emptyLine(flags, commands);
  const named = commandNamed(words, commands);
  if ("noun" in named) return flags.some(isHelp) ? { help: nounHelp(named.noun, commands) } : noVerb(named.noun, named.verb, commands);
  const { command } = named;
  if (flags.some(isHelp)) return { help: commandHelp(command) };
  checkFlags(flags, command);
  const rest = words.slice(command.name.split(" ").length).map((word) => seal + word);
  return { command, ...parsed(command, [...flags, ...rest]) };
}

function emptyLine(flags: readonly string[], commands: readonly Command[]): Parsed {
  if (flags.includes("--version")) return { version: true };
  if (flags.some(isHelp)) return { help: wholeHelp(commands) };
  throw new UsageError("no command; headfast --help lists them");
}

function isHelp(flag: string): boolean {
  return flag === "--help" || flag === "-h";
}

/** Words and options apart; each option with its value in one text, the value sealed. */
function sealed(argv: readonly string[], commands: readonly Command[]): { words: string[]; flags: string[] } {
  const known = [...commonOptions, ...commands.flatMap(({ options = [] }) => options)];
  const words: string[] = [];
  const flags: string[] = [];
  for (let at = 0; at < argv.length; at += 1) {
    const arg = argv[at] as string;
    if (arg === "--") return { words: [...words, ...argv.slice(at + 1)], flags };
    if (!/^-[^\d]/u.test(arg)) {
      words.push(arg);
      continue;
    }
    const name = arg.split("=", 1)[0] as string;
    const inline = arg.length > name.length ? arg.slice(name.length + 1) : undefined;
    if (!takesValue(name, known)) flags.push(withoutValue(name, inline));
    else flags.push(`${name}=${seal}${inline ?? following(name, argv[++at])}`);
  }
  return { words, flags };
}

function takesValue(name: string, known: readonly OptionSpec[]): boolean {
  return known.some(({ flag }) => flag.startsWith(`${name} <`));
}

function withoutValue(name: string, inline: string | undefined): string {
  if (inline !== undefined) throw new UsageError(`${name} takes no value`);
  return name;
}

function following(name: string, next: string | undefined): string {
  if (next !== undefined && !next.startsWith("--")) return next;
  throw new UsageError(`${name} needs a value${next === undefined ? "" : ` (for one that begins with dashes: ${name}=${next})`}`);
}

function commandNamed(
  words: readonly string[],
  commands: readonly Command[],
): { command: Command } | { noun: string; verb: string | undefined } {
  const [first = "", second] = words;
  const command = commands.find(({ name }) => name === first || name === `${first} ${second}`);
  if (command !== undefined) return { command };
  if (commands.some(({ name }) => name.startsWith(`${first} `))) return { noun: first, verb: second };
  const nouns = [...new Set(commands.map(({ name }) => name.split(" ")[0] as string))];
  throw new UsageError(`there is no command ${JSON.stringify(first)}${didYouMean(first, nouns) || "; headfast --help lists them"}`);
}

function noVerb(noun: string, verb: string | undefined, commands: readonly Command[]): never {
  const verbs = commands.filter(({ name }) => name.startsWith(`${noun} `)).map(({ name }) => name.slice(noun.length + 1));
  if (verb === undefined) throw new UsageError(`${noun} needs a verb: ${verbs.join(", ")}`);
  throw new UsageError(`${noun} has no ${JSON.stringify(verb)}, it has ${verbs.join(", ")}${didYouMean(verb, verbs)}`);
}

function checkFlags(flags: readonly string[], command: Command): void {
  const known = [...commonOptions, ...(command.options ?? [])].map(({ flag }) => flag.split(" ")[0] as string);
  for (const flag of flags) {
    const name = flag.split("=", 1)[0] as string;
    if (!known.includes(name)) throw new UsageError(`${command.name} has no option ${name}${didYouMean(name, known)}`);
  }
}

function parsed(command: Command, argv: readonly string[]): { args: string[]; options: Options } {
  const cli = cliOf(command);
  try {
    cli.parse(["node", "headfast", command.name, ...argv], { run: false });
    cli.matchedCommand?.checkOptionValue();
    cli.matchedCommand?.checkRequiredArgs();
    cli.matchedCommand?.checkUnusedArgs();
  } catch (error) {
    throw new UsageError(`headfast ${usageOf(command)}: ${unsealed((error as Error).message).replace(/ for command `.*`$/u, "")}`);
  }
  const options = Object.entries(cli.options).map(([name, value]) => [name, Array.isArray(value) ? value.map(unsealed) : unsealed(value)]);
  return { args: cli.args.map((arg) => unsealed(arg) as string), options: new Options(Object.fromEntries(options)) };
}

function unsealed<T>(value: T): T {
  return typeof value === "string" ? (value.replaceAll(seal, "") as T) : value;
}

function cliOf(command: Command): CAC {
  const cli = cac("headfast");
  for (const { flag, text } of commonOptions) cli.option(flag, text);
  const added = cli.command(usageOf(command), command.text);
  for (const { flag, text } of command.options ?? []) added.option(flag, text);
  return cli;
}
