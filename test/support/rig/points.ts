/**
 * Points of a turn at which a process can be killed: before or after the n-th call of one operation of a port. The ports
 * are the real ones; only the moment is chosen.
 */
import type { ActivationHandler, Model, Queues, Store } from "../../../src/domain/ports.ts";

export interface Point {
  /** `store.log.insert`, `queues.settle`, `model.call`, `activation`, … */
  operation: string;
  when: "before" | "after";
  /** 1 = the first time since the process began its first activation. */
  nth: number;
}

/** Store and queues that call `die` at the point. What happens outside of activations (start, reconciler) does not count. */
export function dyingParts(
  parts: { store: Store; queues: Queues },
  point: Point,
  die: () => void,
): { store: Store; queues: Queues; model(model: Model): Model } {
  let armed = false;
  let seen = 0;
  const at = async <T>(operation: string, call: () => Promise<T>): Promise<T> => {
    if (!armed || operation !== point.operation) return call();
    seen += 1;
    const due = seen === point.nth;
    if (due && point.when === "before") die();
    const result = await call();
    if (due && point.when === "after") die();
    return result;
  };
  const arming =
    (handler: ActivationHandler): ActivationHandler =>
    (lease) => {
      armed = true;
      return at("activation", () => handler(lease));
    };
  return {
    store: watched("store", parts.store, at),
    queues: watched("queues", parts.queues, at, {
      work: (handler: ActivationHandler, options: { concurrency: number }) => parts.queues.work(arming(handler), options),
    }),
    model: (model) => ({ ...model, call: (request) => at("model.call", () => model.call(request)) }),
  };
}

type At = <T>(operation: string, call: () => Promise<T>) => Promise<T>;

/** A port whose asynchronous functions are told of, those of its parts included. */
function watched<T extends object>(path: string, port: T, at: At, instead: Partial<T> = {}): T {
  return new Proxy(port, {
    get(target, name) {
      const own = Reflect.get(instead, name) as unknown;
      if (own !== undefined) return own;
      const value = Reflect.get(target, name, target) as unknown;
      const here = `${path}.${String(name)}`;
      if (typeof value === "object" && value !== null) return watched(here, value, at);
      if (typeof value !== "function") return value;
      const bound = value.bind(target) as (...args: unknown[]) => unknown;
      return asynchronous.has(String(name)) ? (...args: unknown[]) => at(here, () => bound(...args) as Promise<unknown>) : bound;
    },
  });
}

const asynchronous = new Set([
  ...[
    "get",
    "claim",
    "freeze",
    "rollForward",
    "touch",
    "insert",
    "byNumber",
    "byId",
    "addAttempt",
    "settle",
    "byKey",
    "read",
    "put",
    "baseline",
    "once",
  ],
  ...["peek", "enqueue", "wake", "repair"],
]);
