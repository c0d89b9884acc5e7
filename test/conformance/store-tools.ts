/** What the cases of the store share. */
import type { Store } from "../../src/domain/ports.ts";

/** The store of a suite, there from the first test on. */
export type StoreOf = () => Store;

/** The code that the call rejects with; throws where it resolves. */
export async function codeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  }
  throw new Error("should have been refused");
}

/** `count` calls at once; what they answer, in order. */
export function together<T>(count: number, call: (n: number) => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: count }, (_, n) => call(n)));
}
