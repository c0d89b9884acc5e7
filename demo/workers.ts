/** The demo's worker processes: children that cannot outlive it, and whose unexpected end ends it. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { WorkerConfig } from "./worker.ts";

const program = fileURLToPath(new URL("./worker.ts", import.meta.url));
const stopMs = 5_000;
const tailBytes = 4_000;

export class Workers {
  readonly #base: Omit<WorkerConfig, "name">;
  readonly #running = new Map<string, ChildProcess>();
  readonly #names = new Map<number, string>();
  readonly #expected = new Set<ChildProcess>();
  /** Rejects when one ends that nobody ended. */
  readonly crashed: Promise<never>;
  #crash: (error: Error) => void = () => undefined;

  constructor(base: Omit<WorkerConfig, "name">) {
    this.#base = base;
    this.crashed = new Promise((_resolve, reject) => {
      this.#crash = reject;
    });
    this.crashed.catch(() => undefined); // whoever waits for something else hears of it through the race
  }

  /** Resolves when it takes work. */
  async start(name: string): Promise<void> {
    const config: WorkerConfig = { ...this.#base, name };
    // A group of its own: a Ctrl-C is meant for the demo, which then stops its workers in order.
    const child = fork(program, [JSON.stringify(config)], {
      execArgv: ["--import", import.meta.resolve("tsx")],
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      detached: true,
    });
    let tail = "";
    child.stderr?.setEncoding("utf8").on("data", (text: string) => (tail = (tail + text).slice(-tailBytes)));
    this.#running.set(name, child);
    this.#names.set(child.pid ?? 0, name);
    child.once("close", (code, signal) => {
      this.#running.delete(name);
      if (!this.#expected.has(child))
        this.#crash(new Error(`worker ${name} ended with ${signal ?? code}, and nobody had asked it to:\n${tail.trim()}`));
    });
    await Promise.race([once(child, "message"), this.crashed]);
  }

  /** SIGKILL; resolves when it is gone. */
  async kill(name: string): Promise<void> {
    const child = this.#running.get(name);
    if (child === undefined) throw new Error(`no worker ${name} runs`);
    this.#expected.add(child);
    const gone = once(child, "close");
    child.kill("SIGKILL");
    await gone;
  }

  /** The demo's name of a process as log entries name it: `host/pid/random`. */
  nameOf(worker: string): string {
    return this.#names.get(Number(worker.split("/").at(-2))) ?? worker;
  }

  /** Those that run, for people. */
  get names(): string[] {
    return [...this.#running].map(([name, { pid }]) => `${name} (pid ${pid})`);
  }

  /** Ends all: in good order, then by force. */
  async stop(): Promise<void> {
    await Promise.all([...this.#running.values()].map((child) => this.#stopOne(child)));
  }

  async #stopOne(child: ChildProcess): Promise<void> {
    this.#expected.add(child);
    const gone = once(child, "close");
    const late = setTimeout(() => child.kill("SIGKILL"), stopMs);
    if (child.connected) child.send("stop", () => undefined); // it may end in this very moment
    await gone;
    clearTimeout(late);
  }
}
