/** `tsx src/testing/simulator/run-seeds.ts FROM TO [--first]`: runs seeds, prints violations, a summary line last. */
import { simulate } from "./simulate.ts";

const [from = "1", to = "200", ...flags] = process.argv.slice(2);
let steps = 0;
let found = 0;
let seeds = 0;
for (let seed = Number(from); seed <= Number(to); seed += 1) {
  const result = await simulate(seed);
  steps += result.steps;
  seeds += 1;
  if (result.violation === null) continue;
  found += 1;
  console.log(`seed ${seed}: ${result.violation.message}`);
  if (flags.includes("--trace")) console.log(result.trace.slice(-150).join("\n"));
  if (flags.includes("--first")) break;
}
console.log(JSON.stringify({ seeds, steps, violations: found }));
process.exitCode = found > 0 ? 1 : 0;
