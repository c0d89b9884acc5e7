/** What a command of `headfast` is, and what it is given. One file per noun exports its commands. */
import type { Io } from "./io.ts";
import type { Options } from "./options.ts";
import type { Output } from "./output.ts";

/** The exit codes of every command. */
export const exit = {
  ok: 0,
  failed: 1,
  /** The command line, the config or where the services are is wrong. */
  usage: 2,
  /** What was asked for is not there; a listing is empty. */
  nothing: 3,
  /** It works, but not all of it. */
  degraded: 4,
} as const;

export type ExitCode = (typeof exit)[keyof typeof exit];

/** One option: how it is written (`--bot <name>` takes a value, `--head` takes none), and what it means. */
export interface OptionSpec {
  flag: string;
  text: string;
}

/** One call of a command. */
export interface Call {
  /** The positional arguments; as many as `args` asks for. */
  args: readonly string[];
  options: Options;
  out: Output;
  io: Io;
}

export interface Command {
  /** As typed: `worker`, or noun and verb, `session ls`. */
  name: string;
  /** Positional arguments, all required: `<session> <turn>`. */
  args?: string;
  text: string;
  options?: readonly OptionSpec[];
  /** At least one whole command line. */
  examples: readonly string[];
  run(call: Call): Promise<ExitCode>;
}
