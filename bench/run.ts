/**
 * `npm run bench [-- --json] [--only drain] [--rounds 5]`: each section measures one thing and states its bar. With
 * --json the last line is one JSON object with what all sections measured, by name. Ends with 1 where a bar is missed.
 */
import { ownMongo, ownRedis } from "../services/launcher.ts";
import { drainBench } from "./drain.ts";
import { lookBench } from "./memory-look.ts";
import { type Compared, compareWhole, type Shape } from "./whole.ts";

interface Section {
  name: string;
  /** Answers what goes into the JSON line, by names that no other section uses, and whether every bar held. */
  run(options: Options): Promise<{ result: object; held: boolean }>;
}

interface Options {
  rounds: number;
  tell(line: string): void;
}

const sections: readonly Section[] = [
  { name: "drain", run: drain },
  { name: "whole", run: whole },
  { name: "look", run: look },
];

const wholeShapes: readonly Shape[] = [
  { sessions: 1_000, turns: 10, bar: 1.0 },
  { sessions: 10_000, turns: 1, bar: 0.6 },
];
/** An unchanged look takes at most this many times `git status`, at this many files. */
const lookBar = { ratio: 1.5, files: 20_000 };

async function drain({ rounds, tell }: Options): Promise<{ result: object; held: boolean }> {
  const redis = await ownRedis({ log: tell });
  try {
    const result = await drainBench(redis.url, rounds, tell);
    return { result, held: Object.values(result).every(({ ratio, bar }) => ratio >= bar) };
  } finally {
    await redis.stop();
  }
}

/** The whole path, and that its idle sessions leave no key in Redis. */
async function whole({ rounds, tell }: Options): Promise<{ result: object; held: boolean }> {
  const redis = await ownRedis({ log: tell });
  const mongo = await ownMongo({ log: tell });
  try {
    const compared: Record<string, Compared> = {};
    for (const shape of wholeShapes)
      compared[`${shape.sessions}x${shape.turns}`] = await compareWhole(redis.url, mongo.url, shape, rounds, tell);
    const all = Object.values(compared);
    const held = all.every(({ ratio, bar, keysLeft }) => ratio >= bar && keysLeft === 0);
    return { result: { whole: compared, idle: { keys: Math.max(...all.map(({ keysLeft }) => keysLeft)) } }, held };
  } finally {
    await redis.stop();
    await mongo.stop();
  }
}

async function look({ rounds, tell }: Options): Promise<{ result: object; held: boolean }> {
  const cost = await lookBench(lookBar.files, 3 * rounds);
  tell(`  look: ${cost.unchangedLookMs.toFixed(1)} ms, git status ${cost.gitStatusMs.toFixed(1)} ms, ratio ${cost.ratio.toFixed(2)}`);
  return { result: { look: { ...cost, bar: lookBar.ratio } }, held: cost.ratio <= lookBar.ratio };
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
