// The launcher on the command line.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { constants } from "node:os";
import { findOrStart, type Services } from "./launcher.ts";
import { messageOf } from "./order.ts";

const usage = `Usage: tsx services/cli.ts up                  find or start Redis and MongoDB, print their URLs, stay until Ctrl-C
       tsx services/cli.ts run -- COMMAND…     find or start them, run COMMAND with their URLs in its environment
       tsx services/cli.ts --help

What is started ends with this command. Looked for, in this order: HEADFAST_REDIS_URL and HEADFAST_MONGO_URL, servers listening on the
usual ports, docker compose, programs on the PATH; then Debian's redis-server, and mongodb-memory-server or the MongoDB stand-in.
COMMAND sees HEADFAST_REDIS_URL, HEADFAST_MONGO_URL and, when there is only the stand-in, HEADFAST_MONGO_STAND_IN=1.`;

const forwarded = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
const parentPollMs = 1_000;
const log = (line: string) => console.error(`services: ${line}`);

async function main(args: readonly string[]): Promise<number> {
  const [verb, dashes, ...command] = args;
  if (verb === "--help" || verb === "-h") {
    console.log(usage);
    return 0;
  }
  if (verb === "up" && args.length === 1) return up();
  if (verb === "run" && dashes === "--" && command.length > 0) return runWith(command);
  console.error(usage);
  return 2;
}

async function up(): Promise<number> {
  const asked = new Promise<void>((resolve) => {
    for (const signal of forwarded) process.once(signal, () => resolve());
    // A runner in front of us (npm, tsx) that is killed outright tells us nothing; that we have another parent does.
    const parent = process.ppid;
    setInterval(() => process.ppid !== parent && resolve(), parentPollMs);
  });
  const services = await findOrStart({ log });
  for (const [name, value] of Object.entries(variables(services))) if (value) console.log(`${name}=${value}`);
  log("up; Ctrl-C ends what was started");
  await asked;
  await services.stop();
  return 0;
}

async function runWith(command: readonly string[]): Promise<number> {
  const services = await findOrStart({ log });
  try {
    return await runCommand(command, { ...process.env, ...variables(services) });
  } finally {
    await services.stop();
  }
}

/** Runs it with our own input and output; its exit code, or 128 and the number of the signal that ended it. */
async function runCommand([program = "", ...args]: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  let child: ChildProcess | undefined;
  const forward = (signal: NodeJS.Signals) => {
    // At a terminal Ctrl-C reaches the command without us.
    if (!(signal === "SIGINT" && process.stdin.isTTY)) child?.kill(signal);
  };
  // Before the command runs: it may ask for a signal, by its first line, sooner than we get to the next one.
  for (const signal of forwarded) process.on(signal, forward);
  try {
    child = spawn(program, args, { stdio: "inherit", env });
    const [code, signal] = (await once(child, "exit")) as [number | null, NodeJS.Signals | null];
    return code ?? 128 + (signal ? constants.signals[signal] : 0);
  } finally {
    for (const signal of forwarded) process.off(signal, forward);
  }
}

/** What a command is told; undefined takes a variable away. */
function variables({ redis, mongo }: Services): Record<string, string | undefined> {
  return { HEADFAST_REDIS_URL: redis.url, HEADFAST_MONGO_URL: mongo.url, HEADFAST_MONGO_STAND_IN: mongo.standIn ? "1" : undefined };
}

try {
  process.exit(await main(process.argv.slice(2)));
} catch (error) {
  console.error(messageOf(error));
  process.exit(1);
}
