/** `memory_observation`: the silent baseline of a session and its pending notice, a projection (rule 8). `_id` is the session. */
import type { ObservationStore } from "../domain/ports.ts";
import { type Observation, recordVersion } from "../domain/records.ts";
import type { Documents, Shape } from "./documents.ts";
import { heard as heardOf } from "./fields.ts";
import { id, nullable, object, text, whole } from "./mapping.ts";

export const observationShape: Shape<Observation> = {
  collection: "memory_observation",
  keyOf: (observation) => ({ _id: observation.session }),
  fields: {
    v: ["v", whole],
    session: ["_id", id("session")],
    bot: ["bot_id", id("bot")],
    baseline: ["baseline", nullable(heardOf)],
    baselineEpoch: ["baseline_epoch", whole],
    pending: ["pending", nullable(object({ from: ["from", text], to: ["to", text], text: ["text", text] }))],
    lookedAt: ["looked_at", text],
  },
};

export function observationStore(observations: Documents<Observation>): ObservationStore {
  return {
    get: (session) => observations.get({ _id: session }),

    // Replaces the baseline of an earlier owner; one of this epoch or a later one does not match, and its `_id` collides.
    async baseline(session, bot, ownerEpoch, heard, at) {
      const fresh: Observation = {
        v: recordVersion,
        session,
        bot,
        baseline: heard,
        baselineEpoch: ownerEpoch,
        pending: null,
        lookedAt: at,
      };
      const { _id, ...rest } = observations.encode(fresh);
      return observations.standing({ _id }, { baseline_epoch: { $lt: ownerEpoch } }, { $set: rest, $unset: { pending: "" } });
    },

    project: async (session, ownerEpoch, pending, at) =>
      observations.update({ _id: session }, { baseline_epoch: ownerEpoch }, observations.changes({ pending, lookedAt: at })),
  };
}
