/** Requests for looks at Memory Repositories: one queue per shard, one look of a bot at a time. */
import { DelayedError, type Job } from "bullmq";
import type { BotName } from "../domain/ids.ts";
import { limits } from "../domain/limits.ts";
import type { ObservationQueue } from "../domain/ports.ts";
import type { ActivationWorld } from "./activations.ts";
import type { Adder } from "./adder.ts";
import { Crew, CrewWorker, workerOptions } from "./crew.ts";
import { observationId, observationsQueue } from "./names.ts";
import { lookJob, readLook, schemaVersion } from "./payloads.ts";

/** Looks at different repositories that one process makes at the same time. */
const looksAtOnce = 4;

type LookHandler = (bot: BotName, reason: string) => Promise<void>;

export class RedisObservations implements ObservationQueue {
  readonly #world: ActivationWorld;
  readonly #adder: Adder;
  readonly #prefixOf: (bot: BotName) => string;

  constructor(world: ActivationWorld, adder: Adder, prefixOf: (bot: BotName) => string) {
    this.#world = world;
    this.#adder = adder;
    this.#prefixOf = prefixOf;
  }

  /** Asking while one waits is one look, asking while one runs is one more. */
  async request(bot: BotName, reason: string): Promise<void> {
    const data = JSON.stringify({ schema_version: schemaVersion, bot, reason });
    const options = { deduplication: { id: observationId(bot), keepLastIfActive: true }, removeOnComplete: true, removeOnFail: true };
    await this.#adder.add("asking for a look", [{ prefix: this.#prefixOf(bot), queue: observationsQueue, name: lookJob, data, options }]);
  }

  async work(bots: readonly BotName[], handler: LookHandler): Promise<{ close(): Promise<void> }> {
    const served = new Set(bots);
    const { system, log, link } = this.#world;
    const crew = new Crew(system, link.patient());
    const look = (job: Job, token: string): Promise<void> => this.#look(job, token, served, (...asked) => crew.busy(handler(...asked)));
    for (const prefix of new Set(bots.map((bot) => this.#prefixOf(bot)))) {
      crew.add((connection) => {
        const worker = new CrewWorker(observationsQueue, look, { ...workerOptions, connection, prefix, concurrency: looksAtOnce }, system);
        worker.on("error", (error) => log.debug({ err: error }, "observations worker"));
        return worker;
      });
    }
    return { close: () => crew.close(0, () => undefined) };
  }

  async #look(job: Job, token: string, served: ReadonlySet<BotName>, handler: LookHandler): Promise<void> {
    const asked = job.name === lookJob ? readLook(job.data) : undefined;
    if (asked === undefined) return void this.#world.log.warn({ job: job.id, name: job.name }, "a request that names no bot is dropped");
    if (!served.has(asked.bot)) {
      await job.moveToDelayed(Math.ceil(this.#world.system.now() + limits.unservedMs), token);
      throw new DelayedError();
    }
    try {
      await handler(asked.bot, asked.reason);
    } catch (error) {
      this.#world.log.warn({ err: error, bot: asked.bot }, "a look failed; the look before the next turn makes up for it");
    }
  }
}
