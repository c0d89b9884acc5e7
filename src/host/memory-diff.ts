/** What a session would be told of its Memory Repository if its next turn began now. Reads only. */
import { HeadfastError } from "../domain/errors.ts";
import type { SessionId } from "../domain/ids.ts";
import { readTail } from "../domain/log.ts";
import { type NetChange, netChange, renderNotice } from "../domain/net-change.ts";
import { requireOwner } from "../domain/operations.ts";
import type { Ledger } from "../domain/ports.ts";
import type { MemoryState } from "../domain/records.ts";

export interface MemoryDiff {
  session: SessionId;
  /** `never_looked`: the first look is a silent baseline, so nothing would be told. */
  result: "changed" | "unchanged" | "never_looked";
  /** `null` unless changed. */
  change: NetChange | null;
  /** The notice as the model would read it. */
  notice: string | null;
}

/**
 * The net change from what the session heard, its own writes laid over, to `seen` (I7).
 * @throws `session_not_found`; `document_invalid` where the told state is no longer kept
 */
export async function memoryDiff(ledger: Ledger, session: SessionId, seen: MemoryState): Promise<MemoryDiff> {
  const { store } = ledger;
  const owner = await requireOwner(ledger, session);
  const { checkpoint } = await readTail(store, owner);
  const observation = checkpoint.heard === null ? await store.observations.get(session) : undefined;
  const heard = checkpoint.heard ?? (observation?.baselineEpoch === checkpoint.ownerEpoch ? observation.baseline : null);
  if (heard === null) return { session, result: "never_looked", change: null, notice: null };
  const manifest = heard.state === seen.state ? seen.manifest : await store.states.get(heard.state);
  if (manifest === undefined)
    throw new HeadfastError(
      "document_invalid",
      `memory_states has no ${heard.state}, which session ${JSON.stringify(session)} heard last`,
      { data: { session, state: heard.state } },
    );
  const change = netChange({ ...heard, manifest }, checkpoint.wrote, seen);
  if (change === null) return { session, result: "unchanged", change: null, notice: null };
  return { session, result: "changed", change, notice: renderNotice(change) };
}
