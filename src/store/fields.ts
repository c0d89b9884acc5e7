/** Nested fields that more than one collection has. */
import type { Cause } from "../domain/errors.ts";
import type { Heard, Outcome } from "../domain/records.ts";
import { nullable, object, oneOf, optional, text } from "./mapping.ts";

export const causeOfFailure = object<Cause>({ code: ["code", text], message: ["message", text], stack: ["stack", optional(text)] });

export const outcome = oneOf<Outcome>("done", "dead", "cancelled");

export const heard = object<Heard>({ state: ["state", text], branch: ["branch", nullable(text)], head: ["head", nullable(text)] });
