/**
 * `npm run simulate -- [FROM] [TO] [--first] [--trace] [--src DIR]`: runs seeds and prints each violation with its seed;
 * the last line is a summary as JSON. `--first` stops at the first one, `--trace` prints what led there, `--src` runs other
 * sources than these.
 */
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import type { simulate as Simulate } from "../../src/testing/simulator/simulate.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { first: { type: "boolean" }, trace: { type: "boolean" }, src: { type: "string", default: "src" } },
});
const [from = "1", to = "200"] = positionals;
const path = resolve(values.src, "testing/simulator/simulate.ts");
const { simulate } = (await import(pathToFileURL(path).href)) as { simulate: typeof Simulate };
let steps = 0;
let violations = 0;
let seeds = 0;
for (let seed = Number(from); seed <= Number(to); seed += 1) {
  const result = await simulate(seed);
  steps += result.steps;
  seeds += 1;
  if (result.violation === null) continue;
  violations += 1;
  console.log(`seed ${seed}: ${result.violation.message}`);
  if (values.trace) console.log(result.trace.slice(-200).join("\n"));
  if (values.first) break;
}
console.log(JSON.stringify({ seeds, steps, violations }));
process.exitCode = violations > 0 ? 1 : 0;
