// Programs: finding them, running them to their end, and keeping a server that dies with whoever started it.
import { type ChildProcess, spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { constants } from "node:fs";
import { access, rm } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";

/** How long a server may take until it says that it is ready. */
const readyMs = 60_000;
/** How long a server may take to end when asked; then it is killed. */
const stopMs = 10_000;
const tailLines = 20;
/** Linux gives outgoing connections ports from 32768, others from 49152; Redis Cluster also takes the port 10,000 above. */
const portMin = 20_000;
const portMax = 32_000;
const portTries = 20;

/** The full path of a program on the PATH, or undefined. */
export async function which(program: string): Promise<string | undefined> {
  for (const folder of (process.env.PATH ?? "").split(delimiter).filter(Boolean)) {
    const path = join(folder, program);
    const found = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (found) return path;
  }
  return undefined;
}

/**
 * Starts something that listens on `wanted`, or, if that is 0, on a loopback port that is free, trying others should somebody else be quicker. The port lies
 * below those that systems give to outgoing connections: none of these can sit on it while a killed server is away, not even a client dialling that server.
 */
export async function onFreePort(wanted: number, start: (port: number) => Promise<Guarded>): Promise<{ process: Guarded; port: number }> {
  for (let attempt = 1; ; attempt++) {
    const port = wanted || randomInt(portMin, portMax);
    try {
      if (!wanted) await probePort(port);
      return { process: await start(port), port };
    } catch (error) {
      const taken = error instanceof Error && /EADDRINUSE|address already in use/i.test(error.message);
      if (wanted || !taken || attempt === portTries) throw error;
    }
  }
}

/** Throws EADDRINUSE if the loopback port is taken. */
async function probePort(port: number): Promise<void> {
  const server = createServer().listen(port, "127.0.0.1");
  await once(server, "listening");
  server.close();
  await once(server, "close");
}

/**
 * The shell that stands between us and a program. Its standard input is a pipe of ours: when that ends (we stopped, crashed or were killed) it ends the
 * program and removes the folder. `read` is the shell's own, so no helper process is left; the program's id is the first line it prints.
 */
const guard = `
folder=$1; shift
exec 3<&0
gone=; trap 'gone=1' USR1
"$@" <&3 3<&- &
program=$!
echo "guarding $program"
(
  trap - USR1
  while read -r line <&3; do :; done
  kill -USR1 $$
  kill -TERM $program; kill -CONT $program
  tries=0
  while kill -0 $program && [ $tries -lt 30 ]; do sleep 0.1; tries=$((tries + 1)); done
  kill -KILL $program
) 2>/dev/null >/dev/null &
watch=$!
while :; do
  wait $program; status=$?
  kill -0 $program 2>/dev/null || break
done
kill $watch 2>/dev/null
[ -n "$gone" ] && [ -n "$folder" ] && rm -rf -- "$folder"
exit $status
`;

/** What a program that ran to its end printed (both streams in order of arrival) and its exit code. */
export type Outcome = { code: number | null; output: string; late: boolean };

/** Runs a program to its end, or ends it after `timeLimitMs` (`late`). It dies with this process. Rejects only if no shell can be started. */
export async function run(command: readonly string[], options: { timeLimitMs: number; cwd?: string }): Promise<Outcome> {
  const child = spawn("sh", ["-c", guard, "sh", "", ...command], {
    stdio: "pipe",
    detached: true,
    ...(options.cwd && { cwd: options.cwd }),
  });
  child.stdin.on("error", () => undefined); // it has ended; "close" tells
  let output = "";
  let late = false;
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  const timer = setTimeout(() => {
    late = true;
    child.stdin.end();
  }, options.timeLimitMs);
  const [code] = (await once(child, "close")) as [number | null];
  clearTimeout(timer);
  return { code, output: output.replace(/^guarding \d+\n/, ""), late };
}

/** Like `run`, and throws an error with the end of the output unless the program ends with 0. */
export async function mustRun(command: readonly string[], options: Parameters<typeof run>[1]): Promise<string> {
  const { code, output, late } = await run(command, options);
  if (code === 0) return output;
  const how = late ? `did not end within ${options.timeLimitMs / 1000} s` : `ended with ${code}`;
  throw new Error(`"${command.join(" ")}" ${how}: ${output.trim().split("\n").slice(-tailLines).join("\n")}`);
}

/** A server process of ours. */
export type Guarded = {
  /** The server's own process id (not the guard's). */
  pid: number;
  /** The match of `ready` in the line that told that it is ready. */
  ready: RegExpMatchArray;
  /** Sends a signal to the server. */
  signal(signal: NodeJS.Signals): void;
  /** Resolves when the server is gone. */
  ended: Promise<void>;
  /** Ends it (SIGTERM, then SIGKILL) and waits for that. */
  stop(): Promise<void>;
};

/**
 * Starts a server that cannot outlive this process, and waits for the line of its output that matches `ready`. `folder`, if given, is removed when this
 * process dies without stopping the server. Throws, with the end of its output, if it ends first or stays silent for a minute. A started server does not
 * keep this process running.
 */
export async function startGuarded(
  command: readonly string[],
  options: { ready: RegExp; readyMs?: number; folder?: string; env?: NodeJS.ProcessEnv },
): Promise<Guarded> {
  // A group of its own: a Ctrl-C meant for us must not reach the server before we are done with it.
  const child = spawn("sh", ["-c", guard, "sh", options.folder ?? "", ...command], {
    stdio: ["pipe", "pipe", "pipe"],
    detached: true,
    env: options.env ?? process.env,
  });
  child.stdin.on("error", () => undefined); // the guard went first; `ended` tells
  const ended = once(child, "close").then(() => undefined);
  const tail: string[] = [];
  let pid = 0;
  const ready = new Promise<RegExpMatchArray>((resolve) => {
    const read = (line: string) => {
      const guarding = /^guarding (\d+)$/.exec(line);
      if (guarding) {
        pid = Number(guarding[1]);
        return;
      }
      const match = options.ready.exec(line);
      if (match) resolve(match);
      tail.push(line);
      if (tail.length > tailLines) tail.shift();
    };
    for (const stream of [child.stdout, child.stderr]) createInterface({ input: stream }).on("line", read);
  });
  const stop = async () => {
    keepWaiting(child, true);
    if (child.exitCode === null && child.signalCode === null) {
      signalProcess(pid, "SIGTERM");
      signalProcess(pid, "SIGCONT"); // it may be frozen
    }
    const timer = setTimeout(() => signalProcess(pid, "SIGKILL"), stopMs);
    await ended;
    clearTimeout(timer);
  };

  const match = await firstOf(ready, ended, options.readyMs ?? readyMs);
  if (!match) {
    child.stdin.end();
    await ended;
    throw new Error(`${command[0]} did not get ready: ${tail.join("\n")}`);
  }
  keepWaiting(child, false);
  return { pid, ready: match, signal: (signal) => signalProcess(pid, signal), ended, stop };
}

async function firstOf(ready: Promise<RegExpMatchArray>, ended: Promise<void>, limitMs: number): Promise<RegExpMatchArray | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), limitMs);
  });
  try {
    return await Promise.race([ready, ended.then(() => undefined), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Whether a child, and what we read from it, keeps this process running. */
function keepWaiting(child: ChildProcess, wait: boolean): void {
  for (const handle of [child, child.stdin, child.stdout, child.stderr] as (ChildProcess | Socket | null)[])
    wait ? handle?.ref() : handle?.unref();
}

function signalProcess(pid: number, signal: NodeJS.Signals): void {
  if (pid <= 0) return;
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error; // gone already
  }
}

/** Removes a folder with all that is in it, if it is there. */
export async function removeFolder(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true, maxRetries: 3 });
}
