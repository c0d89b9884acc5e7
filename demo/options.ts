/** The demo's command line. */
import { parseArgs } from "node:util";

export interface Options {
  /** One JSON object as the last line of standard output; all that is for people goes to standard error. */
  json: boolean;
  /** Everything stays up, until Ctrl-C. */
  keep: boolean;
  /** A repository to play on a clone of; `null`: one made for the demo. */
  memory: string | null;
}

export const help = `npm run demo                        plays everything, in about a minute; ends with 0 only if every claim held
npm run demo -- --json              people's text on standard error, the summary as one JSON object on the last line
npm run demo -- --memory DIR        on a clone of your own git repository; nothing is written to DIR
npm run demo -- --keep              leaves everything up until Ctrl-C, and says how to look at it
npm run demo -- --help              this text

Redis and MongoDB are found (HEADFAST_REDIS_URL and HEADFAST_MONGO_URL come first) or started; what was started ends with
the demo. A server that was found is never emptied: there only the demo's own keys and its own database are touched.
Exit code: 0 every claim held, 1 one did not or something broke, 2 unknown option.`;

/** What was asked for; a text where it cannot be understood. */
export function parseOptions(args: readonly string[]): (Options & { help: boolean }) | string {
  const flag = { type: "boolean", default: false } as const;
  try {
    const { values } = parseArgs({
      args: [...args],
      options: { json: flag, keep: flag, help: { ...flag, short: "h" }, memory: { type: "string" } },
    });
    return { json: values.json, keep: values.keep, help: values.help, memory: values.memory ?? null };
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
