/** `session_ownership`: which bot owns a session and what its prefix was frozen from (I5, I6). `_id` is the session. */
import { checkId } from "../domain/ids.ts";
import type { OwnershipStore } from "../domain/ports.ts";
import type { Ownership } from "../domain/records.ts";
import type { Documents, Shape } from "./documents.ts";
import { finite, id, nullable, optional, text, whole } from "./mapping.ts";

export const ownershipShape: Shape<Ownership> = {
  collection: "session_ownership",
  keyOf: (owner) => ({ _id: owner.session }),
  fields: {
    v: ["v", whole],
    session: ["_id", id("session")],
    bot: ["bot_id", id("bot")],
    role: ["role", text],
    provenance: ["provenance", nullable(text)],
    parent: ["parent", nullable(text)],
    ownerEpoch: ["owner_epoch", whole],
    baseline: ["baseline", nullable(whole)],
    personaSnapshot: ["persona_snapshot", optional(text)],
    personaSnapshotAt: ["persona_snapshot_at", optional(text)],
    personaSha256: ["persona_sha256", optional(text)],
    toolsSha256: ["tools_sha256", optional(text)],
    rolePromptsSha256: ["role_prompts_sha256", optional(text)],
    dialect: ["dialect", optional(text)],
    prefixSha256: ["prefix_sha256", optional(text)],
    lastNumber: ["last_number", whole],
    lastSeq: ["last_seq", whole],
    activeAt: ["active_at", finite],
    createdAt: ["created_at", text],
  },
};

const nothingFrozen = {
  baseline: null,
  personaSnapshot: undefined,
  personaSnapshotAt: undefined,
  personaSha256: undefined,
  toolsSha256: undefined,
  rolePromptsSha256: undefined,
  dialect: undefined,
  prefixSha256: undefined,
};

export function ownershipStore(owners: Documents<Ownership>): OwnershipStore {
  return {
    get: (session) => owners.get({ _id: session }),

    // I5: a rival's claim does not match the guard, tries to insert, and collides on `_id`.
    async claim(fresh) {
      const { _id, bot_id, ...rest } = owners.encode(fresh);
      return owners.standing({ _id }, { bot_id }, { $setOnInsert: rest });
    },

    // I6: one guarded update; the guard on the snapshot keeps the first one whatever else was edited.
    async freeze(session, guard, set) {
      const untaken = set.personaSnapshot === undefined ? {} : { persona_snapshot: { $exists: false } };
      await owners.update(
        { _id: session },
        { bot_id: guard.bot, owner_epoch: guard.ownerEpoch, baseline: guard.from, ...untaken },
        owners.changes(set),
      );
    },

    async rollForward(session, to) {
      checkId("bot", to.bot);
      await owners.update({ _id: session }, { owner_epoch: { $lt: to.ownerEpoch } }, owners.changes({ ...to, ...nothingFrozen }));
    },

    touch: (hints) =>
      owners.updateAll(
        hints.map(({ session, lastNumber, lastSeq, activeAt }) => ({
          key: { _id: session },
          guard: {},
          change: { $max: { last_number: lastNumber, last_seq: lastSeq, active_at: activeAt } },
        })),
      ),

    async list({ bot, activeSince, limit }) {
      const filter = { ...(bot !== undefined && { bot_id: bot }), ...(activeSince !== undefined && { active_at: { $gte: activeSince } }) };
      return owners.decodeReadable(await owners.find(filter, { active_at: -1 }, limit));
    },
  };
}
