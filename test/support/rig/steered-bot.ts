/** A bot that does what a turn's input says, and writes each of its calls into the journal. */
import { createHash } from "node:crypto";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Bot, Model, ModelReply, ModelRequest, Tool } from "../../../src/domain/ports.ts";
import { defineBot, fail, isHeadfastError, later, type Reply, refuse, type ScriptRequest, scriptedModel } from "../../../src/index.ts";
import { stream } from "../../../src/models/script.ts";
import type { JournalWriter } from "./journal.ts";

/** What a turn does, as JSON in its input. Times are in milliseconds; counts are of attempts, over all processes. */
export interface Steering {
  /** Takes so long before it answers. */
  sleep?: number;
  /** Waits until the test opens the gate of that name. */
  hold?: string;
  /** This many attempts fail first. */
  fail?: number;
  /** The model call within the turn that fails, crashes or is put off; the first unless given. */
  atStep?: number;
  /** Says half of its answer before it fails. */
  half?: boolean;
  /** This many attempts kill their process. */
  exit?: number;
  /** This many attempts are told to come later, in `laterMs`. */
  later?: number;
  laterMs?: number;
  /** Refused for good. */
  refuse?: boolean;
  /** Calls the tool `work` first, with this. */
  tool?: ToolSteering;
  /** Makes an input long, or unlike another. */
  padding?: string;
}

export interface ToolSteering {
  sleep?: number;
  hold?: string;
}

/** Parts of a bot that a test chooses. */
export interface BotChoice {
  name: string;
  attempts?: number;
  onDead?: "skip" | "park";
}

/** Opens a gate for good, in every process of the rig. */
export function openGate(folder: string, name: string): void {
  writeFileSync(join(folder, `gate-${name}`), "");
}

async function passGate(folder: string, name: string, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && !existsSync(join(folder, `gate-${name}`))) await sleep(10);
}

export function steeredBot(choice: BotChoice, folder: string, journal: JournalWriter): Bot {
  const script = (request: ScriptRequest): Promise<Reply> => answer(request, folder, journal);
  return defineBot({
    ...choice,
    model: journalled(scriptedModel(script, { keep: 1 }), journal),
    tools: [workTool(folder, journal)],
    rolePrompts: ["You do as you are told."],
  });
}

async function answer(request: ScriptRequest, folder: string, journal: JournalWriter): Promise<Reply> {
  const steering = JSON.parse(request.lastUserText) as Steering;
  const { signal } = request;
  const { fail: fails = 0, exit = 0, later: laters = 0 } = request.step === (steering.atStep ?? 1) ? steering : {};
  if (steering.sleep !== undefined) await sleep(steering.sleep, undefined, { signal }).catch(() => undefined);
  if (steering.hold !== undefined) await passGate(folder, steering.hold, signal);
  if (steering.refuse) return refuse("asked to be refused");
  const attempt = fails + exit + laters === 0 ? 1 : journal.attempts(request.session, request.turnId, request.step);
  if (attempt <= exit) process.exit(99);
  if (attempt <= laters) return later(steering.laterMs);
  if (attempt <= fails) return steering.half ? stream(["half ", "an "], "the line broke") : fail(`attempt ${attempt} was asked to fail`);
  if (steering.tool !== undefined && request.step === 1) return { text: "to work", tools: [{ name: "work", args: { ...steering.tool } }] };
  return `re: ${request.turnId}`;
}

/** Runs long if asked to, and says in the journal that it ran. */
function workTool(folder: string, journal: JournalWriter): Tool {
  return {
    name: "work",
    description: "Works for a while.",
    inputSchema: { type: "object" },
    async run(args, { signal, callId, session, turnId }) {
      const { sleep: ms, hold } = args as ToolSteering;
      journal.remark("tool", { session, turnId, callId });
      if (ms !== undefined) await sleep(ms, undefined, { signal });
      if (hold !== undefined) await passGate(folder, hold, signal);
      return "worked";
    },
  };
}

/** Where the first message begins: inside a JSON string each quote is escaped, so that this cannot stand in one. */
const messagesOpen = '"messages":[';

function journalled(model: Model, journal: JournalWriter): Model {
  const call = async (request: ModelRequest): Promise<ModelReply> => {
    const { session, turnId, step, body } = request;
    const cut = body.indexOf(messagesOpen) + messagesOpen.length;
    const end = journal.begin({ session, turnId, step, prefixSha256: sha256(body.slice(0, cut)), tailSha256: sha256(body.slice(cut)) });
    try {
      const reply = await model.call(request);
      end("answered");
      return reply;
    } catch (error) {
      end(request.signal.aborted ? "aborted" : isHeadfastError(error, "model_later") ? "later" : "failed");
      throw error;
    }
  };
  const { name, dialect, maxTokens, limitKey } = model;
  return { name, dialect, maxTokens, limitKey, call };
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
