/**
 * What the jobs carry, as JSON with snake_case names (docs/wire-contract.md). A turn's payload is a reference to the
 * stored turn, with the input beside it while it is small; another client's payload has no number and carries the whole
 * input.
 */
import { z } from "zod";
import { HeadfastError } from "../domain/errors.ts";
import { checkBotName, checkId, type SessionId } from "../domain/ids.ts";
import { limits } from "../domain/limits.ts";
import type { InboxItem, QueuedTurn, RefusedJob } from "../domain/ports.ts";
import type { Turn } from "../domain/records.ts";

/** Version of every payload written by this release (rule 19). */
export const schemaVersion = 1;

/** The job names. */
export const turnJob = "turn";
export const activationJob = "activate";
export const lookJob = "look";
export const inboxJob = "inbox";
export const letterJob = "letter";
export const refusedJob = "refused";

const id = (field: string) => z.string().superRefine(checkedBy((value) => checkId(field, value)));
const bytes = (max: number) => z.string().refine((text) => Buffer.byteLength(text) <= max, { error: `has more than ${max} bytes` });

const turnSchema = z.object({
  schema_version: z.number().int().min(1),
  turn_id: id("turn_id"),
  generation: z.number().int().min(0).default(0),
  number: z.number().int().min(1).optional(),
  bot: z.string().superRefine(checkedBy(checkBotName)),
  input: bytes(limits.inputBytesMax).optional(),
  user: z.object({ id: id("user.id"), name: bytes(limits.userNameBytesMax).optional() }).optional(),
  deliver_to: bytes(limits.idBytesMax).optional(),
  traceparent: bytes(256).optional(),
});

const activationSchema = z.object({ session: id("session") });
const lookSchema = z.object({ bot: z.string().superRefine(checkedBy(checkBotName)), reason: z.string() });
const inboxSchema = z.object({ id: z.string(), text: z.string() });

/** The payload of a turn of ours, as JSON text. */
export function turnData(turn: Turn): string {
  return JSON.stringify({
    schema_version: schemaVersion,
    turn_id: turn.turnId,
    generation: turn.generation,
    number: turn.number,
    bot: turn.bot,
    input: Buffer.byteLength(turn.input) <= limits.inlineInputBytesMax ? turn.input : undefined,
    user: turn.user,
    deliver_to: turn.deliverTo,
    traceparent: turn.traceparent,
  });
}

/**
 * A job of a turn queue as it is understood, or why it is not.
 * @throws {HeadfastError} `version_ahead` for a payload of a newer release, which is never guessed at.
 */
export function readTurnJob(jobId: string, raw: string): QueuedTurn | RefusedJob {
  return readTurn(jobId, parseJson(raw), raw);
}

function readTurn(jobId: string, json: unknown, raw: string): QueuedTurn | RefusedJob {
  if (/^-?\d+$/u.test(jobId)) return refuse(jobId, raw, "job id: it is automatic (an integer); give one made of turn_id and generation");
  if (json === undefined) return refuse(jobId, raw, "data: it is not JSON");
  if (isOurTurn(json)) return queuedTurn(jobId, json);
  checkVersion(json, `job ${jobId}`);
  const parsed = turnSchema.safeParse(json);
  if (!parsed.success) return refuse(jobId, raw, reasonOf(parsed.error));
  const turn = queuedTurn(jobId, parsed.data);
  return turn.number === undefined ? foreignTurn(turn, raw) : turn;
}

/** What is needed to store it must be there. */
function foreignTurn(turn: QueuedTurn, raw: string): QueuedTurn | RefusedJob {
  if (turn.input === undefined) return refuse(turn.jobId, raw, "input: it is missing, and there is no number to read it by");
  if (turn.generation !== 0)
    return refuse(turn.jobId, raw, "generation: only a replay has one above 0, and is sent through the dead letters");
  return turn;
}

function queuedTurn(jobId: string, data: z.infer<typeof turnSchema>): QueuedTurn {
  return {
    jobId,
    turnId: data.turn_id,
    generation: data.generation,
    bot: data.bot,
    ...(data.number !== undefined && { number: data.number }),
    ...(data.input !== undefined && { input: data.input }),
    ...(data.user && { user: { id: data.user.id, ...(data.user.name !== undefined && { name: data.user.name }) } }),
    ...(data.deliver_to !== undefined && { deliverTo: data.deliver_to }),
    ...(data.traceparent !== undefined && { traceparent: data.traceparent }),
  };
}

/**
 * The payload of an activation, as JSON text. With the turn that it is added for, while that is small: a session that
 * was idle then need not read its queue for it. It is a hint, like the turn queue itself, and old at any time but first.
 */
export function activationData(session: SessionId, head?: { jobId: string; data: string }): string {
  const start = `{"schema_version":${schemaVersion},"session":${JSON.stringify(session)}`;
  if (head === undefined || head.data.length > limits.headCharsMax) return `${start}}`;
  return `${start},"head":{"job_id":${JSON.stringify(head.jobId)},"turn":${head.data}}}`;
}

/** The session of an activation, or undefined for a job that means nothing here. */
export function readActivation(data: unknown): SessionId | undefined {
  return activationSchema.safeParse(data).data?.session;
}

/** The turn that an activation of ours was added for; undefined where there is none that can be relied on. */
export function readHead(data: unknown): QueuedTurn | undefined {
  const { head } = (data ?? {}) as { head?: { job_id?: unknown; turn?: unknown } };
  if (typeof head?.job_id !== "string" || !isOurTurn(head.turn)) return undefined;
  return queuedTurn(head.job_id, head.turn);
}

/** The asked look, or undefined for a job that means nothing here. */
export function readLook(data: unknown): { bot: string; reason: string } | undefined {
  return lookSchema.safeParse(data).data;
}

export function inboxData(item: InboxItem): string {
  return JSON.stringify({ schema_version: schemaVersion, ...item });
}

/** Items that cannot be read are left out: the inbox is a projection, the log and the notes are the truth. */
export function readInboxItem(raw: string): InboxItem | undefined {
  return inboxSchema.safeParse(parseJson(raw)).data;
}

/** What this release writes passes here, at a tenth of the schema's cost; the schema says what is wrong with the rest. */
function isOurTurn(turn: unknown): turn is z.infer<typeof turnSchema> & { number: number } {
  if (typeof turn !== "object" || turn === null) return false;
  const {
    schema_version,
    turn_id,
    generation,
    number,
    bot,
    input = "",
    user,
    deliver_to = "",
    traceparent = "",
  } = turn as Record<string, unknown>;
  const { id: userId, name = "" } = (user ?? { id: "none" }) as Record<string, unknown>;
  const texts = [turn_id, bot, input, userId, name, deliver_to, traceparent].every((text) => typeof text === "string");
  return texts && schema_version === schemaVersion && turn_id !== "" && bot !== "" && isWhole(number, 1) && isWhole(generation, 0);
}

function isWhole(value: unknown, least: number): boolean {
  return Number.isInteger(value) && (value as number) >= least;
}

function refuse(jobId: string, raw: string, refused: string): RefusedJob {
  return { jobId, refused, raw };
}

function checkVersion(json: unknown, what: string): void {
  const version = (json as { schema_version?: unknown } | null)?.schema_version;
  if (typeof version !== "number" || version <= schemaVersion) return;
  throw new HeadfastError(
    "version_ahead",
    `${what} has schema_version ${version}, this release knows ${schemaVersion}; upgrade this worker`,
    { data: { version } },
  );
}

/** The value, or undefined for what is not JSON. */
export function parseJson(raw: string): unknown {
  try {
    return JSON.parse(raw) as unknown;
  } catch {
    return undefined;
  }
}

function reasonOf(error: z.ZodError): string {
  const issue = error.issues[0];
  return issue === undefined ? "it is not understood" : `${issue.path.join(".") || "data"}: ${issue.message}`;
}

/** A domain check as a zod refinement: its message becomes the issue's. */
function checkedBy(check: (value: string) => unknown): (value: string, context: z.RefinementCtx) => void {
  return (value, context) => {
    try {
      check(value);
    } catch (error) {
      context.addIssue({ code: "custom", message: error instanceof Error ? error.message : String(error) });
    }
  };
}
