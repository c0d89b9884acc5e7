import type { HeadfastError } from "../../src/domain/errors.ts";

/** What the call rejects with, to look at its code and data; throws where the call resolves. */
export async function refusal(call: Promise<unknown>): Promise<HeadfastError> {
  try {
    await call;
  } catch (error) {
    return error as HeadfastError;
  }
  throw new Error("should have been refused");
}
