/**
 * The connection to Redis, and what is known of the server: whether it answers, its time, since when it runs, whether it
 * is the same as before. A command never waits for a lost connection: it rejects at once, so that a send does not hang
 * for an outage (I13).
 */
import { Redis, type RedisOptions } from "ioredis";
import { HeadfastError } from "../domain/errors.ts";
import { limits } from "../domain/limits.ts";
import type { Logger, System } from "../domain/ports.ts";
import { queueError, translated } from "./errors.ts";
import { readInfo, readTime, unfit } from "./redis-facts.ts";

const retryStrategy = (times: number): number =>
  Math.min(limits.redisReconnectMsMin * 2 ** Math.min(times - 1, 10), limits.redisReconnectMsMax);

/** For commands that must not wait. */
const promptOptions = {
  retryStrategy,
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  socketTimeout: limits.redisSilentMsMax,
  lazyConnect: true,
} satisfies RedisOptions;

/** For BullMQ's Workers, whose commands wait until the server is back. */
const patientOptions = { retryStrategy, maxRetriesPerRequest: null } satisfies RedisOptions;

/** Commands of one turn of the event loop that go out in one write: a write costs as much as what Redis does for it. */
const commandsAtOnce = 8;

/** Gathers commands for a write: few enough that Redis begins while the rest is still made. */
class GatheringRedis extends Redis {
  #gathering: { stream: Redis["stream"]; commands: number } | undefined;

  override sendCommand(...args: Parameters<Redis["sendCommand"]>): unknown {
    const gathering = this.#gather();
    const sent = super.sendCommand(...args);
    if (gathering !== undefined) {
      gathering.commands += 1;
      if (gathering.commands % commandsAtOnce === 0) {
        gathering.stream.uncork();
        gathering.stream.cork();
      }
    }
    return sent;
  }

  #gather(): { stream: Redis["stream"]; commands: number } | undefined {
    const { stream } = this as { stream?: Redis["stream"] };
    if (stream === undefined || this.#gathering?.stream === stream) return this.#gathering;
    const gathering = { stream, commands: 0 };
    this.#gathering = gathering;
    stream.cork();
    setImmediate(() => {
      stream.uncork();
      if (this.#gathering === gathering) this.#gathering = undefined;
    });
    return gathering;
  }
}

/** A connection whose copies can be cut with it: BullMQ makes one for each Worker's blocking read. */
export class PatientRedis extends GatheringRedis {
  readonly #copies: Redis[] = [];

  override duplicate(override?: Partial<RedisOptions>): Redis {
    const copy = super.duplicate(override);
    this.#copies.push(copy);
    return copy;
  }

  /** Ends all of them at once; what was still to be answered rejects. */
  cut(): void {
    for (const client of [this, ...this.#copies]) end(client);
  }
}

/** The driver would wait 2 s for a connection that has ended already, and keep the process that long. */
function end(client: Redis): void {
  if (client.status !== "end") client.disconnect();
}

export class RedisLink {
  /** For all commands but the Workers'. */
  readonly client: Redis;
  readonly #url: string;
  readonly #system: System;
  readonly #log: Logger;
  readonly #restarts: (() => void)[] = [];
  readonly #readies: (() => void)[] = [];
  readonly #first: Promise<void>;
  #fault: HeadfastError | undefined;
  #known = false;
  #runId = "";
  /** When the server process began, or a new one was first seen, on our monotonic clock. */
  #serverSince = 0;
  #time = { redis: 0, monotonic: 0, asking: false };

  constructor(url: string, system: System, log: Logger) {
    this.#url = url;
    this.#system = system;
    this.#log = log;
    this.#time.redis = system.now();
    this.#time.monotonic = system.monotonic();
    this.client = new GatheringRedis(url, promptOptions);
    this.client.on("error", (error) => log.debug({ err: error }, "redis connection"));
    this.#first = new Promise((resolve) => this.client.on("ready", () => void this.#look().then(resolve)));
    void this.client.connect().catch(() => undefined); // told by the error event; it goes on trying
  }

  /**
   * Resolves when the server was looked at, or after a while without: sending goes on without Redis (I13).
   * @throws what makes the server unfit
   */
  async opened(): Promise<void> {
    const late = new AbortController();
    await Promise.race([this.#first, this.#system.sleep(limits.redisStartMsMax, late.signal)]);
    late.abort();
    if (this.#fault !== undefined) throw this.#fault;
    if (!this.#known) this.#log.error({ code: "queue_unavailable" }, "Redis does not answer; going on without until it does");
  }

  /** True while commands are sent and the server is fit. */
  connected(): boolean {
    return this.#known && this.#fault === undefined && this.client.status === "ready";
  }

  /** Runs one call with its error translated. @throws `queue_unavailable` at once where nobody answers. */
  async run<T>(doing: string, call: (client: Redis) => Promise<T>): Promise<T> {
    if (this.#fault !== undefined) throw this.#fault;
    if (!this.connected()) throw new HeadfastError("queue_unavailable", `${doing}: not connected to Redis`);
    return translated(doing, () => call(this.client));
  }

  /** A connection for Workers; who asks for it closes it. */
  patient(): PatientRedis {
    const client = new PatientRedis(this.#url, patientOptions);
    client.on("error", (error) => this.#log.debug({ err: error }, "redis worker connection"));
    return client;
  }

  /** A connection for subscriptions, which waits for the server; who asks for it closes it. */
  listening(): Redis {
    const client = new Redis(this.#url, { retryStrategy, maxRetriesPerRequest: null });
    client.on("error", (error) => this.#log.debug({ err: error }, "redis subscriber connection"));
    return client;
  }

  /** Redis time in milliseconds, as last asked plus what has passed since (rule 15). */
  now(): number {
    const passed = this.#system.monotonic() - this.#time.monotonic;
    if (passed > limits.redisTimeMs) void this.#askTime();
    return this.#time.redis + passed;
  }

  /**
   * True shortly after the server process began, for a job that was added before (wall clock, milliseconds): whoever held it
   * vanished with the server, and crashed no more than that (rule 13).
   */
  restartedSince(addedAt: number): boolean {
    const since = this.#system.monotonic() - this.#serverSince;
    return since < limits.restartGraceMs && addedAt < this.#system.now() - since;
  }

  onRestart(listener: () => void): void {
    this.#restarts.push(listener);
  }

  /** Called after each connect to a fit server. */
  onReady(listener: () => void): void {
    this.#readies.push(listener);
    if (this.connected()) listener();
  }

  async close(): Promise<void> {
    const late = new AbortController();
    const left = this.client.status === "ready" ? this.client.quit().catch(() => undefined) : Promise.resolve();
    await Promise.race([left, this.#system.sleep(limits.redisCloseMsMax, late.signal)]);
    late.abort();
    end(this.client);
  }

  /** After each connect: is it fit, is it the same, what time is it. */
  async #look(): Promise<void> {
    try {
      const facts = readInfo(await this.client.info());
      const skew = await this.#askTime();
      this.#fault = unfit(facts, skew);
      if (this.#fault !== undefined) this.#log.error({ code: this.#fault.code }, this.#fault.message);
      this.#noteServer(facts.runId, facts.uptimeMs);
      this.#known = true;
      if (this.#fault === undefined) for (const listener of this.#readies) listener();
    } catch (error) {
      this.#log.warn(
        { err: queueError("looking at the Redis server", error) },
        "Redis could not be looked at; the next connect tries again",
      );
    }
  }

  #noteServer(runId: string, uptimeMs: number): void {
    const before = this.#runId;
    this.#runId = runId;
    if (runId === before) return;
    // A replica that takes over has run for long: for us it is new, too.
    this.#serverSince = this.#system.monotonic() - (before === "" ? uptimeMs : 0);
    if (before === "") return;
    this.#log.warn({ before, now: runId }, "Redis is back as another process; queues are compared with the store");
    for (const listener of this.#restarts) listener();
  }

  /** Answers own clock minus Redis time. */
  async #askTime(): Promise<number> {
    if (this.#time.asking) return 0;
    this.#time.asking = true;
    try {
      const asked = this.#system.monotonic();
      const redis = readTime(await this.client.time());
      const answered = this.#system.monotonic();
      this.#time.redis = redis + (answered - asked) / 2;
      this.#time.monotonic = answered;
      return this.#system.now() - this.#time.redis;
    } finally {
      this.#time.asking = false;
    }
  }
}
