/** Processes of a rig, seen from the test. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import type { Headfast } from "../../../src/index.ts";

/** A call to a host process. */
export interface Asked {
  id: number;
  area: string;
  method: string;
  args: unknown[];
}

/** `ms`: how long it took there, without the way. */
export type Answered = { id: number; ms: number } & ({ value: unknown } | { error: { code: string; message: string } });

export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** A process that says when it is ready. */
export class Child {
  readonly name: string;
  readonly exited: Promise<Exit>;
  /** Set once it is gone. */
  exit: Exit | undefined;
  /** How the test means it to end, where that is not by 0. */
  expected: "alive" | "killed" | "any" = "alive";
  protected readonly process: ChildProcess;
  readonly #ready: Promise<void>;

  /** `file`: from `program`. */
  constructor(file: string, name: string, wish: unknown) {
    this.name = name;
    const env = { ...process.env, HEADFAST_RIG: JSON.stringify(wish) };
    this.process = fork(file, { execArgv: ["--enable-source-maps"], env, stdio: ["ignore", "inherit", "inherit", "ipc"] });
    this.exited = once(this.process, "exit").then(([code, signal]) => {
      this.exit = { code, signal } as Exit;
      return this.exit;
    });
    const said = new Promise<void>((resolve) => this.process.once("message", () => resolve()));
    this.#ready = Promise.race([said, this.exited.then(() => Promise.reject(new Error(`${name} ended before it was ready`)))]);
    this.#ready.catch(() => undefined);
  }

  get pid(): number {
    return this.process.pid as number;
  }

  /** Resolves with itself when it serves. */
  async ready(): Promise<this> {
    await this.#ready;
    return this;
  }

  /** kill -9. Resolves when it is gone. */
  async kill(): Promise<void> {
    this.expected = "any";
    this.process.kill("SIGKILL");
    await this.exited;
  }

  /** SIGTERM. Resolves with how it ended and how long that took. */
  async term(): Promise<Exit & { ms: number }> {
    this.expected = "any";
    const asked = performance.now();
    this.process.kill("SIGTERM");
    return { ...(await this.exited), ms: performance.now() - asked };
  }
}

type Areas = Pick<Headfast, "turns" | "sessions" | "inbox" | "deadLetters">;
type Method<A extends keyof Areas> = {
  [M in keyof Areas[A]]: Areas[A][M] extends (...args: never[]) => Promise<unknown> ? M : never;
}[keyof Areas[A]];
type Call<A extends keyof Areas, M extends Method<A>> = Areas[A][M] extends (...args: infer P) => Promise<infer R>
  ? { args: P; result: R }
  : never;

export class HostChild extends Child {
  #asked = 0;
  readonly #open = new Map<number, (answered: Answered) => void>();

  constructor(file: string, name: string, wish: unknown) {
    super(file, name, wish);
    this.process.on("message", (message: Answered | { ready: true }) => {
      if ("id" in message) this.#open.get(message.id)?.(message);
    });
  }

  /** Calls a function of the host there, e.g. `call("turns", "send", request)`. Rejects with its error's code. */
  async call<A extends keyof Areas, M extends Method<A>>(
    area: A,
    method: M,
    ...args: Call<A, M>["args"]
  ): Promise<Call<A, M>["result"] & { ms: number }> {
    this.#asked += 1;
    const id = this.#asked;
    const answered = new Promise<Answered>((resolve) => this.#open.set(id, resolve));
    this.process.send({ id, area, method: String(method), args } satisfies Asked);
    const answer = await Promise.race([answered, this.exited.then(() => Promise.reject(new Error(`${this.name} is gone`)))]);
    this.#open.delete(id);
    if ("error" in answer) throw Object.assign(new Error(answer.error.message), { code: answer.error.code });
    return Object.assign(answer.value ?? {}, { ms: answer.ms }) as Call<A, M>["result"] & { ms: number };
  }
}
