/**
 * `npm run planted [-- --json] [NAME…]`: plants each fault in a copy of the sources and lets the simulator look for it, at
 * most 2,000 seeds each. Exit 0 only if every fault was found.
 */
import { spawn } from "node:child_process";
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { simulate } from "../../../src/testing/simulator/simulate.ts";
import { type PlantedFault, plantedFaults } from "./faults.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const seedsMax = 2_000;
const atOnce = 2;

interface Finding {
  fault: PlantedFault;
  /** The seed that found it, or null. */
  seed: number | null;
  violation: string;
}

/** The sources with the fault in them, in a folder of their own below the project (so that packages are found). */
async function plant(fault: PlantedFault, index: number): Promise<string> {
  const folder = join(root, ".headfast", "planted", `${process.pid}-${index}`);
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  await cp(join(root, "src"), join(folder, "src"), { recursive: true });
  await cp(join(root, "package.json"), join(folder, "package.json"));
  const path = join(folder, fault.file);
  const text = await readFile(path, "utf8");
  if (text.split(fault.find).length !== 2)
    throw new Error(`the fault "${fault.what}" does not fit: its text must stand once in ${fault.file}`);
  await writeFile(
    path,
    text.replace(fault.find, () => fault.replace),
  );
  return folder;
}

async function search(fault: PlantedFault, folder: string): Promise<Finding> {
  try {
    for (let from = 1; from <= seedsMax; ) {
      const found = await firstViolation(fault, folder, from);
      if (found === null) break;
      const sound = await simulate(found.seed); // a seed that fails without the fault has found nothing
      if (sound.violation === null) return { fault, ...found };
      console.error(`seed ${found.seed} fails without any fault planted: ${sound.violation.message}`);
      from = found.seed + 1;
    }
    return { fault, seed: null, violation: "" };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function firstViolation(fault: PlantedFault, folder: string, from: number): Promise<{ seed: number; violation: string } | null> {
  const seeds = join(root, "test/simulation/seeds.ts");
  const output = await run(["--import", "tsx", seeds, String(from), String(seedsMax), "--first", "--src", join(folder, "src")]);
  const found = /^seed (\d+): (.*)$/m.exec(output);
  if (found !== null) return { seed: Number(found[1]), violation: found[2] ?? "" };
  if (/"violations":0\}/.test(output)) return null;
  throw new Error(`the simulator did not run with "${fault.what}": ${output.slice(0, 2_000)}`);
}

function run(args: string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    child.stdout.on("data", (chunk: Buffer) => {
      output += chunk.toString("utf8");
    });
    child.stderr.on("data", (chunk: Buffer) => {
      if (output.length < 100_000) output += chunk.toString("utf8");
    });
    child.on("error", reject);
    child.on("close", () => resolve(output));
  });
}

async function main(): Promise<void> {
  const flags = process.argv.slice(2);
  const json = flags.includes("--json");
  const names = flags.filter((flag) => !flag.startsWith("--"));
  const chosen = plantedFaults.filter(
    (fault) => names.length === 0 || names.some((name) => `rule ${fault.rule} ${fault.what}`.includes(name)),
  );
  const findings: Finding[] = [];
  // All copies first: the sources may be edited while the seeds run.
  const queue: [PlantedFault, string][] = [];
  for (const [index, fault] of chosen.entries()) queue.push([fault, await plant(fault, index)]);
  const worker = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const finding = await search(next[0], next[1]);
      findings.push(finding);
      const where = finding.seed === null ? `NOT FOUND in ${seedsMax} seeds` : `seed ${finding.seed}: ${finding.violation.slice(0, 120)}`;
      (json ? console.error : console.log)(`rule ${finding.fault.rule}, ${finding.fault.what}\n    ${where}`);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  const found = findings.filter((finding) => finding.seed !== null).length;
  console.log(JSON.stringify({ planted: chosen.length, found }));
  process.exitCode = found === chosen.length && chosen.length > 0 ? 0 : 1;
}

await main();
