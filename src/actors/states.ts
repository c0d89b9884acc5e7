/** The states of a session actor. `session-actor.ts` says what they mean. */
import type { ActivationEnd } from "../domain/ports.ts";

export type State =
  | { at: "idle" }
  | { at: "assembling"; turn: number }
  | { at: "calling"; turn: number; step: number }
  | { at: "tooling"; turn: number; step: number }
  | { at: "closing"; turn: number }
  | { at: "releasing" };

/** The ways between states; the session actor asserts each step against them, in production too. */
export const ways: Record<State["at"], readonly State["at"][]> = {
  idle: ["assembling", "closing", "releasing"],
  assembling: ["calling", "tooling", "closing", "idle", "releasing"],
  calling: ["tooling", "closing", "idle", "releasing"],
  tooling: ["calling", "closing", "idle", "releasing"],
  closing: ["idle", "releasing"],
  releasing: [],
};

/** What became of running the head: it has its outcome, or the activation looks again, or it ends. */
export type Ran = "ended" | "again" | ActivationEnd;
