/** The model of a simulated bot: an operation of the scheduler that may answer, refuse, hang, put off or kill. */
import { HeadfastError } from "../../domain/errors.ts";
import type { ToolCall } from "../../domain/messages.ts";
import type { Model, ModelReply, ModelRequest } from "../../domain/ports.ts";
import { anthropicDialect } from "../../models/anthropic-dialect.ts";
import type { Chance } from "./chance.ts";
import type { CallRecord, History } from "./history.ts";
import type { Plan } from "./plan.ts";
import type { Process, Scheduler } from "./scheduler.ts";

export interface ModelWorld {
  plan: Plan;
  chance: Chance;
  scheduler: Scheduler;
  history: History;
  /** Faults are over: the model answers. */
  calm(): boolean;
  kill(process: Process, why: string): void;
  onCall(call: CallRecord): void | Promise<void>;
  steps(): number;
}

export function simulatedModel(world: ModelWorld, process: Process, bot: string): Model {
  return {
    name: `model-of-${bot}`,
    dialect: anthropicDialect,
    maxTokens: 1000,
    limitKey: `key-of-${bot}`,
    call: (request) =>
      world.scheduler.call(
        process,
        `model.call ${request.turnId}.${request.step}`,
        "model",
        () => answer(world, process, request),
        request.signal,
      ),
  };
}

async function answer(world: ModelWorld, process: Process, request: ModelRequest): Promise<ModelReply> {
  const { plan, chance, history } = world;
  const { session, turnId, step, body } = request;
  const call: CallRecord = { process: process.name, session, turnId, step, body, result: "ok", at: world.steps() };
  history.calls.push(call);
  void world.onCall(call);
  if (plan.killer && turnId.startsWith("killer") && !world.calm()) {
    call.result = "died";
    world.kill(process, "a turn that kills its process");
    return new Promise(() => undefined);
  }
  if (!world.calm()) {
    if (chance.is(plan.modelFails)) {
      call.result = "failed";
      history.injected(session, turnId).failures += 1;
      throw new HeadfastError("model_failed", "the simulated model failed");
    }
    if (chance.is(plan.modelLater)) {
      call.result = "later";
      throw new HeadfastError("model_later", "the simulated model asks for a wait", { retryAfterMs: chance.below(3_000) });
    }
    if (chance.is(plan.modelRefuses)) {
      call.result = "refused";
      history.injected(session, turnId).refusals += 1;
      throw new HeadfastError("model_refused", "the simulated model refuses this body");
    }
    if (chance.is(plan.modelHangs)) {
      call.result = "hung";
      history.injected(session, turnId).failures += 1;
      return new Promise(() => undefined); // the caller's own time limit ends it
    }
  }
  const toolCalls = step <= toolStepsOf(plan, turnId) ? [writeCall(chance, session, turnId, step, body.length)] : [];
  return {
    message: { role: "assistant", text: toolCalls.length > 0 ? "" : `answer to ${turnId}`, toolCalls },
    usage: { fresh: 1, cacheRead: null, cacheWrite: null, output: 1 },
  };
}

/** A function of the turn: every attempt wants the same steps. */
function toolStepsOf(plan: Plan, turnId: string): number {
  return (turnId.charCodeAt(turnId.length - 1) * 7 + plan.seed) % (plan.toolSteps + 1);
}

function writeCall(chance: Chance, session: string, turnId: string, step: number, at: number): ToolCall {
  const path = chance.pick(["notes.md", "log.md", "PERSONA.md"]);
  return {
    id: `toolu_${turnId.replaceAll(/[^a-z0-9]/g, "_")}_${step}_${at}`,
    name: "write",
    arguments: JSON.stringify({ path, text: `${session} ${turnId} step ${step} ${chance.below(3)}` }),
  };
}
