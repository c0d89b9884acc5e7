/**
 * `npm run demo`: Headfast's promises, played on real parts, each claim printed with the query that checked it.
 * The first line is printed before anything heavy is loaded. Whatever ends the demo ends its worker processes too.
 */
import { help, type Options, parseOptions } from "./options.ts";

const parentPollMs = 500;
const signals = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

/** Resolves with the exit code when somebody asks for the end: by a signal, or by killing who started us. */
function askedToEnd(): Promise<number> {
  return new Promise((resolve) => {
    for (const [signal, code] of Object.entries(signals)) process.on(signal, () => resolve(code));
    const parent = process.ppid;
    setInterval(() => process.ppid !== parent && resolve(1), parentPollMs).unref();
  });
}

async function main(options: Options): Promise<number> {
  const say = (line: string): void => void (options.json ? process.stderr : process.stdout).write(`${line}\n`);
  say("Headfast, end to end: real Redis and MongoDB, two worker processes, seven acts.");
  const asked = askedToEnd();
  try {
    const { play } = await import("./play.ts");
    return await play(options, say, asked);
  } catch (error) {
    console.error(`\nThe demo could not be played: ${error instanceof Error ? error.message : String(error)}`);
    return 1;
  }
}

const options = parseOptions(process.argv.slice(2));
if (typeof options === "string") {
  console.error(`${options}\n\n${help}`);
  process.exit(2);
}
if (options.help) {
  console.log(help);
  process.exit(0);
}
process.exit(await main(options));
