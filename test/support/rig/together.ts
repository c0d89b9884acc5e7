/** Tests that wait long for the same thing, a lock that runs out, wait at the same time. */
import type { Suite } from "../suite.ts";

/** Adds a test for each body. All begin with the first; each reports for itself. */
export function together(test: Suite, bodies: Readonly<Record<string, () => Promise<void>>>): void {
  const running = new Map<string, Promise<void>>();
  const begin = (): void => {
    for (const [name, body] of Object.entries(bodies)) {
      const run = body();
      run.catch(() => undefined); // told by its own test
      running.set(name, run);
    }
  };
  for (const name of Object.keys(bodies)) {
    test(name, () => {
      if (running.size === 0) begin();
      return running.get(name);
    });
  }
}
