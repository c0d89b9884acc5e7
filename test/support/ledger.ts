/** A ledger in memory with entries written as a holder would, for unit tests of the domain and the actors. */
import { checkTurnRequest, claimSession, freshTurn, placeTurn } from "../../src/domain/acceptance.ts";
import { withOutcome } from "../../src/domain/checkpoint.ts";
import { buildEntry, type Draft, type Tail } from "../../src/domain/entry.ts";
import { readTail } from "../../src/domain/log.ts";
import { requireOwner } from "../../src/domain/operations.ts";
import type { Ledger } from "../../src/domain/ports.ts";
import type { Entry, Ownership, Turn } from "../../src/domain/records.ts";
import { fakeClock } from "../../src/testing/fake-clock.ts";
import { type MemoryStore, memoryStore } from "../../src/testing/memory-store.ts";

export type TestLedger = Ledger & { store: MemoryStore };

export function testLedger(): TestLedger {
  return { store: memoryStore(), system: fakeClock(), worker: "w", shardOf: () => 0 };
}

/** Accepts a turn of session `s` of the bot `ada`. */
export async function accepted(ledger: TestLedger, turnId: string, bot = "ada"): Promise<Turn> {
  await claimSession(ledger, "s", bot);
  const fresh = freshTurn(ledger, checkTurnRequest({ bot, session: "s", turnId, input: `say ${turnId}` }), 0);
  return (await placeTurn(ledger, fresh, 0)).turn;
}

export function owner(ledger: TestLedger): Promise<Ownership> {
  return requireOwner(ledger, "s");
}

export async function tail(ledger: TestLedger): Promise<Tail> {
  return readTail(ledger.store, await owner(ledger));
}

/** Appends what the draft says behind the log's end. */
export async function append(ledger: TestLedger, draft: (tail: Tail) => Draft): Promise<Entry> {
  const end = await tail(ledger);
  const entry = buildEntry("s", end, draft(end), ledger.system);
  await ledger.store.log.insert(entry);
  await ledger.store.ownership.touch([{ session: "s", lastNumber: 0, lastSeq: entry.seq, activeAt: 0 }]);
  return entry;
}

function ref({ number, turnId, generation }: Turn): Pick<Turn, "number" | "turnId" | "generation"> {
  return { number, turnId, generation };
}

/** A first step that asks for a tool: the turn is open from then on. */
export function stepOf(turn: Turn, step = 1): (tail: Tail) => Draft {
  return ({ checkpoint }) => ({
    kind: "step",
    worker: "w",
    turn: ref(turn),
    step,
    checkpoint: { ...checkpoint, open: { ...ref(turn), steps: step } },
  });
}

export function doneOf(turn: Turn, step = 1): (tail: Tail) => Draft {
  return ({ checkpoint }) => ({
    kind: "step",
    worker: "w",
    turn: ref(turn),
    step,
    outcome: "done",
    checkpoint: withOutcome(checkpoint, turn.number),
  });
}

export function deadOf(turn: Turn, parks = false): (tail: Tail) => Draft {
  return ({ checkpoint }) => {
    const ended = withOutcome(checkpoint, turn.number);
    const parked = parks ? { turnId: turn.turnId, generation: turn.generation } : null;
    return {
      kind: "dead",
      worker: "w",
      turn: ref(turn),
      outcome: "dead",
      cause: { code: "model_failed", message: "broken" },
      parks,
      checkpoint: { ...ended, parked },
    };
  };
}
