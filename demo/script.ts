/**
 * The model's script: deterministic answers, and what the acts ask for in brackets at the beginning of an input.
 *
 *   [hold GATE] …                the call waits until the gate is open
 *   [fail GATE] …                the call fails until the gate is open
 *   [later GATE] …               the provider says "later" until the gate is open
 *   [write PATH] …               the model writes the rest of the text to a file of its memory, then answers
 *   [write-hold PATH GATE] …     the same, and the call after the write waits for the gate
 */
import { fail, later, type Reply, type ScriptRequest } from "../src/index.ts";
import type { Signals } from "./signals.ts";

/** How long the provider of the demo wants to be left alone. */
const laterMs = 1_000;

type Verb = (request: ScriptRequest, args: readonly string[], text: string) => Reply | Promise<Reply>;

/** A script for one worker process. */
export function demoScript(signals: Signals, worker: string): (request: ScriptRequest) => Promise<Reply> {
  const held = async (request: ScriptRequest, gate: string): Promise<void> => {
    signals.hold(request.turnId, { worker, pid: process.pid });
    await signals.opened(gate, request.signal);
  };
  const verbs: Record<string, Verb> = {
    async hold(request, [gate = ""], text) {
      await held(request, gate);
      return answer(text);
    },
    fail: (_request, [gate = ""], text) => (signals.isOpen(gate) ? answer(text) : fail("the provider of the demo is broken")),
    later: (_request, [gate = ""], text) => (signals.isOpen(gate) ? answer(text) : later(laterMs)),
    write: (request, [path = ""], text) => (request.toolResults.length > 0 ? answer(text) : write(path, text)),
    async "write-hold"(request, [path = "", gate = ""], text) {
      if (request.toolResults.length === 0) return write(path, text);
      await held(request, gate);
      return answer(text);
    },
  };
  return async (request) => {
    const [, verb = "", rest = "", text = ""] = /^\[([\w-]+) ([^\]]+)\]\s*([\s\S]*)$/.exec(request.lastUserText) ?? [];
    const act = verbs[verb];
    return act === undefined ? answer(request.lastUserText) : act(request, rest.split(" "), text);
  };
}

function write(path: string, text: string): Reply {
  return { tools: [{ name: "write", args: { path: `/memory/${path}`, content: `${text}\n` } }] };
}

/** Long enough that a conversation of a dozen turns is worth a provider's cache. */
function answer(text: string): string {
  const said = text.length > 160 ? `${text.slice(0, 160)}…` : text;
  return [
    `You said: ${said}`,
    "Here is how I see it. What you ask for touches three things that we settled earlier, so I keep to them: the plan stays",
    "in one file, every change to it is written down on the day it is made, and nobody has to ask twice where something is.",
    "If that is still what you want, I go on with the next step; if it is not, say which of the three should give way.",
  ].join("\n");
}
