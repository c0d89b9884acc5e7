/** Events and signals within one process. */
import type { SessionId } from "../domain/ids.ts";
import type { Events, TurnEvent } from "../domain/ports.ts";

interface Subscriber {
  listener: (event: TurnEvent) => void;
  onReconnect: () => void;
}

export class MemoryEvents implements Events {
  readonly #subscribers = new Map<SessionId, Set<Subscriber>>();
  readonly #signals = new Set<(session: SessionId) => void>();

  publish(event: TurnEvent): void {
    // As over a wire: a copy, and never inside the publisher's call.
    const text = JSON.stringify(event);
    queueMicrotask(() => {
      for (const subscriber of [...(this.#subscribers.get(event.session) ?? [])]) subscriber.listener(JSON.parse(text) as TurnEvent);
    });
  }

  async subscribe(session: SessionId, listener: (event: TurnEvent) => void, onReconnect: () => void): Promise<() => Promise<void>> {
    const subscriber = { listener, onReconnect };
    const all = this.#subscribers.get(session) ?? new Set<Subscriber>();
    this.#subscribers.set(session, all.add(subscriber));
    return async () => {
      all.delete(subscriber);
      if (all.size === 0 && this.#subscribers.get(session) === all) this.#subscribers.delete(session);
    };
  }

  signal(session: SessionId): void {
    queueMicrotask(() => {
      for (const listener of [...this.#signals]) listener(session);
    });
  }

  async onSignal(listener: (session: SessionId) => void): Promise<() => Promise<void>> {
    this.#signals.add(listener);
    return async () => {
      this.#signals.delete(listener);
    };
  }

  /** The connection came back: what was published meanwhile is lost, so everybody reads the truth again. */
  reconnected(): void {
    for (const all of this.#subscribers.values()) for (const one of [...all]) one.onReconnect();
  }
}
