/**
 * Accepting a turn: its insert is the acknowledgement's ground, gives it its place (I3) and finds duplicates (I4).
 */

import { HeadfastError } from "./errors.ts";
import { type BotName, checkBotName, checkId, type SessionId, type TurnId } from "./ids.ts";
import { limits } from "./limits.ts";
import { findLast } from "./log.ts";
import type { User } from "./messages.ts";
import type { Ledger, System } from "./ports.ts";
import { sha256 } from "./prefix.ts";
import { type Ownership, recordVersion, type Turn } from "./records.ts";

/** What a host sends. */
export interface TurnRequest {
  bot: BotName;
  session: SessionId;
  turnId: TurnId;
  input: string;
  user?: User;
  deliverTo?: string;
  traceparent?: string;
}

/**
 * Checks everything and makes texts well-formed once (lone surrogates become U+FFFD), before anything is written (I11).
 * @throws `invalid_id`, `invalid_input`, `input_too_large`
 */
export function checkTurnRequest(value: unknown): TurnRequest {
  if (value === null || typeof value !== "object" || Array.isArray(value))
    throw new HeadfastError("invalid_input", "a turn must be an object { bot, session, turnId, input }");
  const given = value as Record<string, unknown>;
  const request: TurnRequest = {
    bot: checkBotName(given.bot),
    session: checkId("session", given.session),
    turnId: checkId("turnId", given.turnId),
    input: checkText("input", given.input, limits.inputBytesMax),
  };
  if (given.user !== undefined) request.user = checkUser(given.user);
  if (given.deliverTo !== undefined) request.deliverTo = checkId("deliverTo", given.deliverTo);
  if (given.traceparent !== undefined) request.traceparent = checkTraceparent(given.traceparent);
  const unknown = Object.keys(given).find((key) => !turnFields.has(key));
  if (unknown !== undefined)
    throw new HeadfastError("invalid_input", `a turn has no field ${JSON.stringify(unknown)}; it has ${[...turnFields].join(", ")}`, {
      data: { field: unknown },
    });
  return request;
}

const turnFields = new Set(["bot", "session", "turnId", "input", "user", "deliverTo", "traceparent"]);

/** A text of people or hosts: well-formed from here on. @throws `invalid_input`, `input_too_large` */
export function checkText(field: string, value: unknown, bytesMax: number): string {
  if (typeof value !== "string")
    throw new HeadfastError(
      "invalid_input",
      `${field} must be a string, got ${value === null ? "null" : Array.isArray(value) ? "an array" : typeof value}`,
      { data: { field } },
    );
  if (value === "") throw new HeadfastError("invalid_input", `${field} must not be empty`, { data: { field } });
  const text = value.toWellFormed();
  const bytes = Buffer.byteLength(text);
  if (bytes > bytesMax)
    throw new HeadfastError("input_too_large", `${field} has ${bytes} bytes, the limit is ${bytesMax}`, {
      data: { field, bytes, bytesMax },
    });
  return text;
}

/** W3C Trace Context, level 1: version, trace id, parent id, flags; a later version may add to it. Zeros name nothing. */
const traceparentForm = /^(?!ff)([0-9a-f]{2})-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?$/u;

function checkTraceparent(value: unknown): string {
  const text = checkText("traceparent", value, 256);
  const [, version, more] = traceparentForm.exec(text) ?? [];
  if (version !== undefined && (version !== "00" || more === undefined)) return text;
  throw new HeadfastError(
    "invalid_input",
    "traceparent must be a W3C trace context, 00-<trace id>-<parent id>-<flags>; leave out what is none",
    {
      data: { field: "traceparent" },
    },
  );
}

function checkUser(value: unknown): User {
  if (value === null || typeof value !== "object" || Array.isArray(value))
    throw new HeadfastError("invalid_input", "user must be an object { id, name? }", { data: { field: "user" } });
  const { id, name } = value as Record<string, unknown>;
  const user: User = { id: checkId("user.id", id) };
  if (name !== undefined) user.name = checkText("user.name", name, limits.userNameBytesMax);
  return user;
}

/** A turn before it has a number. */
export function freshTurn({ system, shardOf }: Ledger, request: TurnRequest, generation: number): Turn {
  const now = system.now();
  return {
    v: recordVersion,
    session: request.session,
    number: 0,
    turnId: request.turnId,
    generation,
    bot: request.bot,
    input: request.input,
    inputSha256: sha256(request.input),
    ...(request.user === undefined ? {} : { user: request.user }),
    ...(request.deliverTo === undefined ? {} : { deliverTo: request.deliverTo }),
    ...(request.traceparent === undefined ? {} : { traceparent: request.traceparent }),
    acceptedAt: new Date(now).toISOString(),
    writer: system.id(),
    attempts: [],
    attemptsSpent: 0,
    dueAt: null,
    crashes: 0,
    stallSeen: null,
    startMark: null,
    cancelMark: null,
    open: uniqueMark(shardOf(request.session), system),
    outcome: null,
    outcomeSeq: null,
    letter: null,
  };
}

/** `shard:time`, so that a range of the text is one shard in order of time. */
export function markAt(shard: number, milliseconds: number): string {
  return `${shard}:${String(milliseconds).padStart(15, "0")}`;
}

/** A mark that no other turn has: a cursor behind it leaves nothing out. */
export function uniqueMark(shard: number, system: System): string {
  return `${markAt(shard, system.now())}:${system.id().slice(0, 8)}`;
}

export type Accepted = { turn: Turn; duplicate: boolean };

/**
 * Inserts the turn under the next number (rule 1). `lastKnown` is a number known to exist with a
 * majority (a hint: it may lag), or 0.
 * A turn of the same id and generation makes it a duplicate: `turn` is then the one that stands.
 */
export async function placeTurn({ store, system }: Ledger, fresh: Turn, lastKnown: number): Promise<Accepted> {
  const { session, turnId, generation } = fresh;
  let number = lastKnown + 1;
  let collisions = 0;
  for (let tries = 0; tries < limits.raceTriesMax; ) {
    const turn = { ...fresh, number };
    if ((await store.turns.insert(turn)) === "inserted") return { turn, duplicate: false };
    const atNumber = await store.turns.byNumber(session, number);
    if (atNumber?.writer === fresh.writer) return { turn: atNumber, duplicate: false }; // a lost answer: mine
    const sameId = await store.turns.byId(session, turnId, generation);
    if (sameId !== undefined) return { turn: sameId, duplicate: sameId.writer !== fresh.writer };
    if (atNumber !== undefined) {
      // Only now, since it was read with a majority (rule 1); where the hint lagged far, the end is searched once.
      collisions += 1;
      const last = collisions === 3 ? await findLast((n) => store.turns.byNumber(session, n), number) : undefined;
      number = (last?.n ?? number) + 1;
    } else {
      tries += 1;
      await system.sleep(tries); // neither stands with a majority: insert the same number again (rule 3)
    }
  }
  throw new HeadfastError(
    "store_unavailable",
    `turn ${number} of session ${JSON.stringify(session)} is held by an insert without majority; send again with the same turnId`,
  );
}

/**
 * The owner, claimed for the bot where the session is unknown (I5). `seen`: the caller has seen the session before, so a
 * read will find it; else the claim comes first. @throws `ownership_conflict` naming the owner.
 */
export async function claimSession(
  { store, system }: Ledger,
  session: SessionId,
  bot: BotName,
  more: { role?: string; provenance?: string; parent?: SessionId } = {},
  seen = false,
): Promise<Ownership> {
  const known = seen ? await store.ownership.get(session) : undefined;
  const standing = known ?? (await store.ownership.claim(freshOwnership(session, bot, system, more)));
  if (standing.bot !== bot) {
    throw new HeadfastError(
      "ownership_conflict",
      `session ${JSON.stringify(session)} belongs to bot ${JSON.stringify(standing.bot)}, not to ${JSON.stringify(bot)}; only a re-own changes that`,
      {
        data: { session, owner: standing.bot, claimant: bot },
      },
    );
  }
  return standing;
}

/** The ownership document of a session that nobody owned. */
export function freshOwnership(
  session: SessionId,
  bot: BotName,
  system: System,
  more: { role?: string; provenance?: string; parent?: SessionId } = {},
): Ownership {
  const now = system.now();
  return {
    v: recordVersion,
    session,
    bot,
    role: more.role ?? "orchestrator",
    provenance: more.provenance ?? null,
    parent: more.parent ?? null,
    ownerEpoch: 0,
    baseline: null,
    lastNumber: 0,
    lastSeq: 0,
    activeAt: now,
    createdAt: new Date(now).toISOString(),
  };
}
