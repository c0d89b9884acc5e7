/** `headfast worker`: runs the config's bots until it is told to stop. It logs JSON lines on stdout. */
import { type Logger as Pino, pino } from "pino";
import { causeOf } from "../domain/errors.ts";
import { limits } from "../domain/limits.ts";
import type { Logger } from "../domain/ports.ts";
import { Headfast } from "../main.ts";
import { realSystem } from "../system.ts";
import { type Call, type Command, type ExitCode, exit } from "./command.ts";
import { requiredBots } from "./config-file.ts";
import { requiredPlace } from "./connect.ts";
import { redacted } from "./redact.ts";

/** Signals that end a worker: the first drains, the second ends at once. */
const signals = ["SIGTERM", "SIGINT"] as const;

async function work(call: Call): Promise<ExitCode> {
  const { options } = call;
  const place = requiredPlace(call);
  const concurrency = options.whole("concurrency", { min: 1, max: limits.concurrencyMax }) ?? 64;
  const drainMs = options.whole("drain-ms", { min: 0 }) ?? limits.drainMs;
  const observeEveryMs = options.whole("observe-every-ms", { min: 0 }) ?? 0;
  const log = jsonLog();
  dieOnBugs(log);
  const stop = asked(log);
  stop.whileStarting(true);
  const bots = await requiredBots(call);
  const hf = await Headfast.start({ ...place, bots, concurrency, drainMs, observeEveryMs, logger: portLogger(log) });
  stop.whileStarting(false);
  await readiness(hf, stop.signal);
  if (!stop.signal.aborted)
    log.info({ bots: bots.map(({ name }) => name), namespace: place.namespace, concurrency, worker: hf.internals.ledger.worker }, "ready");
  await aborted(stop.signal);
  log.info({ drain_ms: drainMs }, "draining");
  const closed = await Promise.race([hf.close().then(() => true), realSystem.sleep(drainMs + limits.closeGraceMs).then(() => false)]);
  log.info({}, closed ? "stopped" : "stopped; a server that did not answer was not waited for");
  stop.release();
  process.exit(exit.ok); // whatever still waits for an absent server has nothing left to save
}

/** Every line is redacted as a whole, and written before the next thing happens. */
function jsonLog(): Pino {
  const hooks = { streamWrite: redacted };
  return pino(
    { base: { pid: process.pid }, hooks, timestamp: pino.stdTimeFunctions.isoTime, formatters: { level: (level) => ({ level }) } },
    pino.destination({ fd: 1, sync: true }),
  );
}

function portLogger(log: Pino): Logger {
  const at =
    (level: "debug" | "info" | "warn" | "error") =>
    (data: Record<string, unknown>, message: string): void =>
      log[level](data, message);
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

/** A worker that does not know its own state must not go on: others take over what it ran. */
function dieOnBugs(log: Pino): void {
  const die =
    (what: string) =>
    (error: unknown): void => {
      log.fatal({ error: causeOf(error) }, what);
      process.exit(exit.failed);
    };
  process.on("unhandledRejection", die("unhandled rejection"));
  process.on("uncaughtException", die("uncaught exception"));
}

interface Stop {
  /** Aborted by the first signal. */
  signal: AbortSignal;
  /** Nothing runs yet that would have to be drained: a signal ends the process. */
  whileStarting(starting: boolean): void;
  /** Hears signals no longer. */
  release(): void;
}

function asked(log: Pino): Stop {
  const controller = new AbortController();
  let starting = false;
  const listener = (name: NodeJS.Signals): void => {
    if (controller.signal.aborted) {
      log.warn({ signal: name }, "second signal: ending at once; others take over what ran here");
      process.exit(exit.failed);
    }
    log.info({ signal: name }, "asked to stop");
    controller.abort();
    if (starting) process.exit(exit.ok);
  };
  for (const name of signals) process.on(name, listener);
  return {
    signal: controller.signal,
    whileStarting: (now) => {
      starting = now;
    },
    release: () => {
      for (const name of signals) process.off(name, listener);
    },
  };
}

/** Ready to work means: Redis answers (MongoDB did, or nothing would have started). */
async function readiness(hf: Headfast, signal: AbortSignal): Promise<void> {
  while (!hf.internals.queues.connected() && !signal.aborted) await realSystem.sleep(limits.redisReconnectMsMax, signal);
}

/** Also keeps the process alive until then. */
async function aborted(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) await realSystem.sleep(limits.reconcileMs, signal);
}

export const workerCommands: readonly Command[] = [
  {
    name: "worker",
    text: "Run the config's bots; SIGTERM drains and exits 0, a second signal exits 1 at once",
    options: [
      { flag: "--concurrency <n>", text: "Sessions that run at the same time; default 64" },
      { flag: "--drain-ms <ms>", text: `How long what runs may take to finish on SIGTERM; default ${limits.drainMs}` },
      { flag: "--observe-every-ms <ms>", text: "Look at each Memory Repository this often, besides before each turn; default never" },
    ],
    examples: ["headfast worker --config headfast.config.mjs --concurrency 32"],
    run: work,
  },
];
