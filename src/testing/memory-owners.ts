/** `OwnershipStore` in memory. */
import { checkId } from "../domain/ids.ts";
import type { OwnershipStore } from "../domain/ports.ts";
import type { Ownership } from "../domain/records.ts";
import type { MemoryReplica } from "./memory-replica.ts";
import type { MemoryTable } from "./memory-table.ts";

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

export function memoryOwners(replica: MemoryReplica, owners: MemoryTable<Ownership>): OwnershipStore {
  return {
    get: (session) => replica.read(() => owners.read(session)),
    async claim(fresh) {
      checkOwner(fresh);
      return replica.settled(() => {
        owners.insert(fresh.session, fresh);
        return owners.onPrimary(fresh.session);
      });
    },
    freeze: (session, guard, set) => {
      const open = (owner: Ownership): boolean =>
        owner.bot === guard.bot &&
        owner.ownerEpoch === guard.ownerEpoch &&
        owner.baseline === guard.from &&
        (set.personaSnapshot === undefined || owner.personaSnapshot === undefined); // I6
      return replica.write(() => owners.update(session, open, () => set));
    },
    async rollForward(session, to) {
      checkId("bot", to.bot);
      const lower = (owner: Ownership): boolean => owner.ownerEpoch < to.ownerEpoch;
      await replica.write(() => owners.update(session, lower, () => ({ ...to, ...nothingFrozen })));
    },
    touch: (hints) =>
      replica.write(() =>
        hints
          .map((hint) =>
            owners.update(
              hint.session,
              (owner) => leads(hint, owner),
              (owner) => highest(hint, owner),
            ),
          )
          .includes(true),
      ),
    list: ({ bot, activeSince, limit }) =>
      replica.read(() =>
        owners
          .all()
          .filter((owner) => (bot === undefined || owner.bot === bot) && (activeSince === undefined || owner.activeAt >= activeSince))
          .sort((a, b) => b.activeAt - a.activeAt)
          .slice(0, limit),
      ),
  };
}

type Hint = Pick<Ownership, "lastNumber" | "lastSeq" | "activeAt">;

function leads(hint: Hint, owner: Hint): boolean {
  return hint.lastNumber > owner.lastNumber || hint.lastSeq > owner.lastSeq || hint.activeAt > owner.activeAt;
}

function highest(a: Hint, b: Hint): Hint {
  return {
    lastNumber: Math.max(a.lastNumber, b.lastNumber),
    lastSeq: Math.max(a.lastSeq, b.lastSeq),
    activeAt: Math.max(a.activeAt, b.activeAt),
  };
}

/** @throws `invalid_id` before anything is written (C4). */
export function checkOwner(value: { session: unknown; bot: unknown }): void {
  checkId("session", value.session);
  checkId("bot", value.bot);
}
