// A server that belongs to whoever asked for it: to be emptied, killed, frozen or filled.
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Guarded, removeFolder } from "./process.ts";

/** A server of one's own on a loopback port. It dies with the process that asked for it. */
export type OwnServer = {
  readonly url: string;
  readonly port: number;
  /** The server's process id; another one after `restart`. */
  readonly pid: number;
  /** The folder of its data. */
  readonly dir: string;
  /** Sends a signal to it: SIGKILL unless given. Waits until it is gone if the signal ends it; not for SIGSTOP and SIGCONT. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Starts it again on the same port with the same data folder; one that still runs is asked to end first. What it keeps is what it had written there. */
  restart(): Promise<void>;
  /** Ends it and removes its data folder, unless the folder was given. May be called more than once. */
  stop(): Promise<void>;
};

/** How one kind of server is started in a folder on a port; port 0: any free one. Resolves when it answers. `removeWithUs`: the folder goes when this process dies. */
export type Start = (folder: string, port: number, removeWithUs: boolean) => Promise<{ process: Guarded; port: number }>;

/** Starts a server in a folder of its own, or in the one given (which is then kept). */
export async function startOwn(kind: "redis" | "mongo", start: Start, options: { port?: number; dir?: string }): Promise<OwnServer> {
  const temporary = options.dir === undefined;
  const dir = options.dir ?? (await mkdtemp(join(tmpdir(), `headfast-${kind}-`)));
  const begin = (port: number) => start(dir, port, temporary);
  let running: Awaited<ReturnType<Start>>;
  try {
    running = await begin(options.port ?? 0);
  } catch (error) {
    if (temporary) await removeFolder(dir);
    throw error;
  }
  const { port } = running;
  return {
    url: kind === "redis" ? `redis://127.0.0.1:${port}` : `mongodb://127.0.0.1:${port}`,
    port,
    dir,
    get pid() {
      return running.process.pid;
    },
    async kill(signal = "SIGKILL") {
      running.process.signal(signal);
      if (signal === "SIGSTOP" || signal === "SIGCONT") return;
      await running.process.stop();
    },
    async restart() {
      await running.process.stop();
      running = await begin(port);
    },
    async stop() {
      await running.process.stop();
      if (temporary) await removeFolder(dir);
    },
  };
}
