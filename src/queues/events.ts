/** What hosts hear, over Redis' pub/sub: no key, no history, no promise. */
import type { Redis } from "ioredis";
import { z } from "zod";
import type { SessionId } from "../domain/ids.ts";
import type { Events, Logger, TurnEvent } from "../domain/ports.ts";
import type { RedisLink } from "./connection.ts";
import { translated } from "./errors.ts";
import { eventsChannel, signalsChannel } from "./names.ts";

interface Subscriber {
  onMessage: (message: string) => void;
  onReconnect: () => void;
}

const eventSchema = z.object({
  session: z.string(),
  seq: z.number(),
  type: z.string(),
  turnId: z.string(),
  generation: z.number(),
  data: z.record(z.string(), z.unknown()),
});

export class RedisEvents implements Events {
  readonly #link: RedisLink;
  readonly #namespace: string;
  readonly #log: Logger;
  readonly #channels = new Map<string, Set<Subscriber>>();
  #subscriber: Redis | undefined;

  constructor(link: RedisLink, namespace: string, log: Logger) {
    this.#link = link;
    this.#namespace = namespace;
    this.#log = log;
  }

  publish(event: TurnEvent): void {
    this.#send(eventsChannel(this.#namespace, event.session), JSON.stringify(event));
  }

  async subscribe(session: SessionId, listener: (event: TurnEvent) => void, onReconnect: () => void): Promise<() => Promise<void>> {
    const onMessage = (message: string): void => {
      const event = readEvent(message);
      if (event?.session === session) listener(event);
    };
    return this.#listen(eventsChannel(this.#namespace, session), { onMessage, onReconnect });
  }

  signal(session: SessionId): void {
    this.#send(signalsChannel(this.#namespace), session);
  }

  async onSignal(listener: (session: SessionId) => void): Promise<() => Promise<void>> {
    return this.#listen(signalsChannel(this.#namespace), { onMessage: listener, onReconnect: () => undefined });
  }

  close(): void {
    this.#subscriber?.disconnect();
    this.#channels.clear();
  }

  #send(channel: string, message: string): void {
    this.#link
      .run("publishing an event", (client) => client.publish(channel, message))
      .catch((error) => this.#log.debug({ err: error, channel }, "an event is dropped"));
  }

  async #listen(channel: string, subscriber: Subscriber): Promise<() => Promise<void>> {
    const all = this.#channels.get(channel) ?? new Set<Subscriber>();
    this.#channels.set(channel, all.add(subscriber));
    try {
      // The second of a channel asks again: the first may not stand yet.
      await translated("subscribing to events", () => this.#connection().subscribe(channel));
    } catch (error) {
      await this.#leave(channel, all, subscriber);
      throw error;
    }
    return () => this.#leave(channel, all, subscriber);
  }

  async #leave(channel: string, all: Set<Subscriber>, subscriber: Subscriber): Promise<void> {
    all.delete(subscriber);
    if (all.size > 0 || this.#channels.get(channel) !== all) return;
    this.#channels.delete(channel);
    await this.#subscriber
      ?.unsubscribe(channel)
      .catch((error) => this.#log.debug({ err: error, channel }, "unsubscribing failed; the connection is made anew"));
  }

  /** One connection for all channels, made when first needed. */
  #connection(): Redis {
    this.#subscriber ??= this.#connect();
    return this.#subscriber;
  }

  #connect(): Redis {
    const client = this.#link.listening();
    client.on("message", (channel: string, message: string) => {
      for (const one of [...(this.#channels.get(channel) ?? [])]) one.onMessage(message);
    });
    // ioredis subscribes again by itself; what was published meanwhile is lost.
    client.on("ready", () => {
      for (const all of this.#channels.values()) for (const one of [...all]) one.onReconnect();
    });
    return client;
  }
}

function readEvent(message: string): TurnEvent | undefined {
  try {
    return eventSchema.safeParse(JSON.parse(message)).data as TurnEvent | undefined;
  } catch {
    return undefined; // another program's message on our channel: lossy by design
  }
}
