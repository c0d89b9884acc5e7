/** The options of a host's calls, checked whole before anything is read or written: programs without types call too. */
import { z } from "zod";
import { HeadfastError } from "../domain/errors.ts";
import { limits } from "../domain/limits.ts";
import type { Actor } from "../domain/operations.ts";

/** A timer of Node's takes no longer time: it would end at once. */
const timerMsMax = 2 ** 31 - 1;

/** Rows of one listing. */
export const limitOption = z.int().min(1).max(limits.listMax).optional();
export const signalOption = z.instanceof(AbortSignal, { error: "expected an AbortSignal" }).optional();
/** Milliseconds; absent: without end. */
export const timeoutOption = z.number().min(0).max(timerMsMax).optional();
/** A place in a log, 0 before its first entry. */
export const afterOption = z.int().min(0).optional();
const actorFields = { by: z.string().min(1).max(limits.userNameBytesMax), why: z.string().max(limits.noteBytesMax) };
/** Of a session or a bot: checked as the id it is, with the error that ids have. */
const idOption = z.unknown().optional();
export const byOption = actorFields.by.optional();
export const whyOption = actorFields.why.optional();

export const listOptions = z.strictObject({ limit: limitOption, bot: idOption });
export const letterOptions = z.strictObject({ limit: limitOption, bot: idOption, session: idOption });
export const transcriptOptions = z.strictObject({ after: afterOption, limit: limitOption });
export const waitOptions = z.strictObject({ timeoutMs: timeoutOption, signal: signalOption });
export const replayOptions = z.strictObject({ position: z.enum(["tail", "head"]).optional(), by: byOption, why: whyOption });
export const discardOptions = z.strictObject({ by: byOption, why: whyOption });
/** Of a re-own, which nobody does without a name. */
export const actorOptions = z.strictObject({ by: actorFields.by, why: whyOption });
export const claimOptions = z.strictObject({
  role: z.string().max(limits.botNameBytesMax).optional(),
  provenance: z.string().max(limits.noteBytesMax).optional(),
  parent: idOption,
});

/**
 * Checks what a call was given. @throws {HeadfastError} `invalid_input` naming the call and each field that is wrong
 */
export function checkOptions(call: string, schema: z.ZodType, given: unknown): void {
  const checked = schema.safeParse(given);
  if (checked.success) return;
  const [{ path, message } = { path: [], message: "" }] = checked.error.issues;
  const field = path.map(String).join(".");
  throw new HeadfastError("invalid_input", `${call}: ${field === "" ? "its options" : field}: ${message}`, {
    data: { call, ...(field !== "" && { field }) },
  });
}

/** Who acts, as it is kept: texts are made well-formed once. */
export function actorOf({ by = "operator", why }: Partial<Actor>): Actor {
  return { by: by.toWellFormed(), ...(why === undefined ? {} : { why: why.toWellFormed() }) };
}
