/** What every `Store` must do. The in-memory and the MongoDB one pass the same cases, or the simulator proves a fiction. */
import type { Store } from "../../src/domain/ports.ts";
import { type Suite, suite } from "../support/suite.ts";
import { logCases } from "./store-log-cases.ts";
import { ownershipCases } from "./store-ownership-cases.ts";
import { smallCases } from "./store-small-cases.ts";
import type { StoreOf } from "./store-tools.ts";
import { turnCases } from "./store-turn-cases.ts";

/** Runs all cases against what `make` opens; `remove` takes away what it held, after the store was closed. */
export function storeSuite(name: string, make: () => Promise<{ store: Store; remove(): Promise<void> }>): void {
  const cases: Record<string, (test: Suite, store: StoreOf) => void> = {
    ownership: ownershipCases,
    turns: turnCases,
    log: logCases,
    small: smallCases,
  };
  for (const [part, add] of Object.entries(cases)) {
    const test = suite(`${name}: ${part}`);
    let made: Awaited<ReturnType<typeof make>> | undefined;
    test.before(async () => {
      made = await make();
    });
    test.after(async () => {
      await made?.store.close();
      await made?.remove();
    });
    add(test, () => {
      if (made === undefined) throw new Error("the store was not opened");
      return made.store;
    });
    test.run();
  }
}
