/** Turns as the benchmarks send them. */
import { recordVersion, type Turn } from "../src/domain/records.ts";

/** The n-th turn of a session: a short message of a person, as a chat platform gives it. */
export function turnOf(session: string, number: number): Turn {
  return {
    v: recordVersion,
    session,
    number,
    turnId: `1712.${number}`,
    generation: 0,
    bot: "bench",
    input: `message ${number} of a person who asks what the weather is like`,
    inputSha256: "",
    user: { id: "U024BE7LH", name: "Ada" },
    deliverTo: session,
    acceptedAt: "",
    writer: "",
    attempts: [],
    attemptsSpent: 0,
    dueAt: null,
    crashes: 0,
    stallSeen: null,
    startMark: null,
    cancelMark: null,
    open: null,
    outcome: null,
    outcomeSeq: null,
    letter: null,
  };
}
