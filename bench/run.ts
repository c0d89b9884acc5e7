/**
 * `npm run bench [-- --json] [--only drain] [--rounds 5]`: each section measures one thing and states its bar. With
 * --json the last line is one JSON object with what all sections measured, by name. Ends with 1 where a bar is missed.
 */
import { ownRedis } from "../services/launcher.ts";
import { drainBench } from "./drain.ts";

interface Section {
  name: string;
  /** Answers what goes into the JSON line, by names that no other section uses, and whether every bar held. */
  run(options: Options): Promise<{ result: object; held: boolean }>;
}

interface Options {
  rounds: number;
  tell(line: string): void;
}

const sections: readonly Section[] = [{ name: "drain", run: drain }];

async function drain({ rounds, tell }: Options): Promise<{ result: object; held: boolean }> {
  const redis = await ownRedis({ log: tell });
  try {
    const result = await drainBench(redis.url, rounds, tell);
    return { result, held: Object.values(result).every(({ ratio, bar }) => ratio >= bar) };
  } finally {
    await redis.stop();
  }
}

function argument(name: string): string | undefined {
  const at = process.argv.indexOf(`--${name}`);
  return at === -1 ? undefined : process.argv[at + 1];
}

const only = argument("only");
const options: Options = { rounds: Number(argument("rounds") ?? 5), tell: (line) => console.error(line) };
const chosen = sections.filter(({ name }) => only === undefined || name === only);
if (chosen.length === 0) throw new Error(`there is no section ${only}; there are: ${sections.map(({ name }) => name).join(", ")}`);
const results = {};
let held = true;
for (const section of chosen) {
  const outcome = await section.run(options);
  Object.assign(results, outcome.result);
  held &&= outcome.held;
}
if (process.argv.includes("--json")) console.log(JSON.stringify(results));
process.exitCode = held ? 0 : 1;
