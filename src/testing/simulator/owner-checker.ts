/** I5, I6 and I8, on the ownership documents as they change and on every request that was sent. */
import type { SessionId } from "../../domain/ids.ts";
import type { Ownership } from "../../domain/records.ts";
import { checkBody } from "../../models/anthropic-check.ts";
import { anthropicDialect } from "../../models/anthropic-dialect.ts";
import type { CallRecord } from "./history.ts";
import { cachedParts, demand, Violation } from "./log-checker.ts";

const roles = ["You are a simulated bot. Your Memory Repository is at /memory."];
const tools = [
  {
    name: "write",
    description: "Writes a file.",
    inputSchema: { type: "object", properties: { path: { type: "string" }, text: { type: "string" } } },
  },
];

export class OwnerChecker {
  readonly #last = new Map<SessionId, Ownership>();
  readonly #snapshots = new Map<string, { body: string; at: string }>();
  /** Requests' prefixes that a session may send: one for each baseline it had. */
  readonly #allowed = new Map<SessionId, Set<string>>();
  /** Every body that PERSONA.md had while its repository was ready, per bot. */
  readonly personas = new Map<string, Set<string>>();

  follow(owner: Ownership): void {
    const before = this.#last.get(owner.session);
    this.#last.set(owner.session, owner);
    if (before !== undefined) {
      demand(owner.ownerEpoch >= before.ownerEpoch, "I5", `the owner epoch fell from ${before.ownerEpoch} to ${owner.ownerEpoch}`);
      demand(
        owner.ownerEpoch > before.ownerEpoch || owner.bot === before.bot,
        "I5",
        `the owner changed from ${before.bot} to ${owner.bot} without a re-own`,
      );
      demand(owner.ownerEpoch > before.ownerEpoch || (owner.baseline ?? -1) >= (before.baseline ?? -1), "I6", "the baseline went back");
    }
    this.#checkSnapshot(owner);
  }

  #checkSnapshot(owner: Ownership): void {
    const key = `${owner.session}#${owner.ownerEpoch}`;
    const known = this.#snapshots.get(key);
    const { personaSnapshot: body, personaSnapshotAt: at } = owner;
    if (body === undefined || at === undefined) {
      demand(known === undefined, "I6", "a persona snapshot vanished");
      demand(body === undefined && at === undefined && owner.baseline !== 1, "I6", "a snapshot is half there");
      if (owner.baseline === 0) this.#allow(owner, null);
      return;
    }
    demand(known === undefined || (known.body === body && known.at === at), "I6", "a persona snapshot was written twice");
    demand(
      this.personas.get(owner.bot)?.has(body) === true,
      "I6",
      `the snapshot ${JSON.stringify(body)} is no persona that ${owner.bot} ever had`,
    );
    this.#snapshots.set(key, { body, at });
    this.#allow(owner, body);
  }

  #allow(owner: Ownership, persona: string | null): void {
    const prefix = anthropicDialect.renderPrefix({ tools, rolePrompts: roles, persona });
    const allowed = this.#allowed.get(owner.session) ?? new Set();
    this.#allowed.set(owner.session, allowed.add(cachedParts(`{${prefix}]}`).prefix));
  }

  /** Nothing but frozen text, and only after it was frozen (I1, I6, I8). */
  onCall(call: CallRecord): void {
    checkAcceptable(call.body);
    demand(
      this.#allowed.get(call.session)?.has(cachedParts(call.body).prefix) === true,
      "I1",
      `a request of ${call.session} has a prefix that was never frozen for it`,
    );
  }
}

/** What a provider would refuse is never sent: open tool calls, empty blocks. */
function checkAcceptable(body: string): void {
  try {
    checkBody(body);
  } catch (error) {
    throw new Violation("I2", `a body that no provider accepts: ${(error as Error).message}`);
  }
}
