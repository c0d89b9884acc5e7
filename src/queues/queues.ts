/** The `Queues` port on BullMQ and Redis: names, payloads and scripts are in the files beside this one. */
import type { SessionId, TurnId } from "../domain/ids.ts";
import type { ActivationHandler, ActivationRunner, Logger, QueuedTurn, Queues, RefusedJob, System } from "../domain/ports.ts";
import type { Turn } from "../domain/records.ts";
import { Activations, type ActivationWorld } from "./activations.ts";
import { Adder, activation, type NewJob } from "./adder.ts";
import { RedisLink } from "./connection.ts";
import { RedisEvents } from "./events.ts";
import { RedisInbox } from "./inbox.ts";
import { RedisLetters } from "./letters.ts";
import { Mailbox } from "./mailbox.ts";
import { shardOf, shardPrefix, turnJobId, turnsQueue } from "./names.ts";
import { RedisObservations } from "./observations.ts";
import { turnData, turnJob } from "./payloads.ts";
import { Shelf } from "./shelf.ts";
import { Stays } from "./stays.ts";
import { WakeUps } from "./wakeups.ts";

export interface RedisQueuesOptions {
  /** redis:// or rediss:// */
  url: string;
  /** Names every key. */
  namespace: string;
  shards: number;
  system: System;
  log: Logger;
}

/**
 * Opens the queues. A Redis that does not answer is waited for a little, then gone on without: sending works without it.
 * @throws `eviction_policy`, `clock_skew` or `configuration` where the server is unfit
 */
export async function openQueues(options: RedisQueuesOptions): Promise<RedisQueues> {
  const queues = new RedisQueues(options);
  try {
    await queues.opened();
    return queues;
  } catch (error) {
    await queues.close();
    throw error;
  }
}

export class RedisQueues implements Queues {
  readonly shards: number;
  readonly inbox: RedisInbox;
  readonly letters: RedisLetters;
  readonly observations: RedisObservations;
  readonly events: RedisEvents;
  readonly #link: RedisLink;
  readonly #adder: Adder;
  readonly #shelf: Shelf;
  readonly #mailbox: Mailbox;
  readonly #wakeUps: WakeUps;
  readonly #stays: Stays;
  readonly #world: ActivationWorld;
  readonly #prefixes: readonly string[];
  readonly #runners = new Set<Activations>();

  constructor({ url, namespace, shards, system, log }: RedisQueuesOptions) {
    this.shards = shards;
    this.#prefixes = Array.from({ length: shards }, (_, shard) => shardPrefix(namespace, shard));
    const prefixOf = (id: string): string => this.#prefixes[shardOf(id, shards)] as string;
    this.#link = new RedisLink(url, system, log);
    this.#adder = new Adder(this.#link, system);
    this.#shelf = new Shelf(this.#link);
    this.#stays = new Stays(system);
    this.#mailbox = new Mailbox(this.#shelf, (session) => ({ prefix: prefixOf(session), queue: turnsQueue(session) }));
    this.#wakeUps = new WakeUps(this.#link, this.#prefixes, (session) => this.shardOf(session));
    this.#world = {
      link: this.#link,
      system,
      log,
      prefixes: this.#prefixes,
      wake: (session) => this.wake(session),
      mailbox: this.#mailbox,
    };
    this.inbox = new RedisInbox(this.#shelf, this.#adder, prefixOf);
    this.letters = new RedisLetters(this.#shelf, this.#adder, this.#prefixes, prefixOf);
    this.observations = new RedisObservations(this.#world, this.#adder, prefixOf);
    this.events = new RedisEvents(this.#link, namespace, log);
  }

  /** Resolves when the server was looked at, or after a while without. */
  opened(): Promise<void> {
    return this.#link.opened();
  }

  shardOf(session: SessionId): number {
    return shardOf(session, this.shards);
  }

  now(): number {
    return this.#link.now();
  }

  connected(): boolean {
    return this.#link.connected();
  }

  /** Jobs of turn queues that other clients had delayed or prioritized, and that were moved to `wait`. */
  get strays(): number {
    return this.#shelf.strays;
  }

  async enqueue(turn: Turn): Promise<void> {
    const job = this.#turn(turn);
    await this.#adder.add("enqueueing a turn", [job, this.#activation(turn.session, job)]);
  }

  async wake(session: SessionId): Promise<void> {
    await this.#adder.add("waking a session", [this.#activation(session)]);
  }

  promote(session: SessionId): Promise<void> {
    return this.#wakeUps.promote(session);
  }

  peek(session: SessionId): Promise<(QueuedTurn | RefusedJob)[]> {
    return this.#mailbox.peek(session);
  }

  settle(session: SessionId, jobIds: readonly string[]): Promise<(QueuedTurn | RefusedJob)[]> {
    return this.#mailbox.settle(session, jobIds);
  }

  jobId(turnId: TurnId, generation: number): string {
    return turnJobId(turnId, generation);
  }

  async repair(session: SessionId, turns: readonly Turn[]): Promise<{ turns: number; activations: number }> {
    const missing = await this.#missing(session, turns);
    const known = await this.#wakeUps.known(session);
    const jobs = [...missing.map((turn) => this.#turn(turn)), ...(known ? [] : [this.#activation(session)])];
    if (jobs.length > 0) await this.#adder.add("mending queues", jobs);
    return { turns: missing.length, activations: known ? 0 : 1 };
  }

  async work(handler: ActivationHandler, options: { concurrency: number }): Promise<ActivationRunner> {
    const runner = new Activations(this.#world, this.#stays, handler, options.concurrency);
    this.#runners.add(runner);
    return {
      close: async (drainMs) => {
        await runner.close(drainMs);
        this.#runners.delete(runner);
      },
    };
  }

  onRestart(listener: () => void): void {
    this.#link.onRestart(listener);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#runners].map((runner) => runner.close(0)));
    this.#stays.close();
    this.events.close();
    await this.#link.close();
  }

  /** Turns whose job is not there: adding one that is there would be harmless, but leaves an event each time. */
  async #missing(session: SessionId, turns: readonly Turn[]): Promise<Turn[]> {
    const queue = `${this.#prefixes[this.shardOf(session)]}:${turnsQueue(session)}`;
    const keys = turns.map((turn) => `${queue}:${turnJobId(turn.turnId, turn.generation)}`);
    const present = await this.#link.run("looking for turns", async (client) => Promise.all(keys.map((key) => client.exists(key))));
    return turns.filter((_, index) => present[index] === 0);
  }

  #turn(turn: Turn): NewJob & { jobId: string } {
    const prefix = this.#prefixes[this.shardOf(turn.session)] as string;
    return { prefix, queue: turnsQueue(turn.session), name: turnJob, jobId: turnJobId(turn.turnId, turn.generation), data: turnData(turn) };
  }

  #activation(session: SessionId, head?: { jobId: string; data: string }): NewJob {
    return activation(this.#prefixes[this.shardOf(session)] as string, session, head);
  }
}
