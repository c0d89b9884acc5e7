/**
 * One worker process of the demo. Its configuration is its only argument; it says "ready" to whoever started it, ends in
 * good order when told "stop", and at once when that process is gone.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { type Bot, defineBot, type Model, scriptedModel, startWorker } from "../src/index.ts";
import { type NaiveView, recordBody } from "./bodies.ts";
import { demoScript } from "./script.ts";
import { Signals } from "./signals.ts";

export interface WorkerConfig {
  name: string;
  redis: string;
  mongo: string;
  namespace: string;
  /** Where gates, held calls and bodies lie. */
  folder: string;
  /** The Memory Repository of the bot `ada`. */
  memory: string;
  /** Sessions that run at the same time. */
  concurrency: number;
  /** The model's name in each request. */
  model: string;
  /** Requests of this session also keep what a naive bot would have seen. */
  twin: string;
}

/** Few enough that the twin's requests are about as long as the others. */
const listedMax = 12;
const drainMs = 2_000;

/** `ada` has a Memory Repository; `ben` has none and a provider with bad days. */
function botsOf(config: WorkerConfig): Bot[] {
  const script = demoScript(new Signals(config.folder), config.name);
  const model = (limitKey: string): Model => recorded(scriptedModel(script, { name: config.model, limitKey, keep: 1 }), config);
  return [
    defineBot({ name: "ada", model: model("ada"), memory: config.memory, rolePrompts: ["You are one of two assistants of a small team."] }),
    defineBot({ name: "ben", model: model("ben"), attempts: 2, rolePrompts: ["You are the other assistant. You keep no memory."] }),
  ];
}

/** The model, with every body written down before it is answered. */
function recorded(model: Model, config: WorkerConfig): Model {
  return {
    ...model,
    call(request) {
      const { session, turnId, step, body } = request;
      const naive = session === config.twin ? { naive: naiveView(config.memory) } : {};
      recordBody(config.folder, { worker: config.name, session, turnId, step, at: Date.now(), body, ...naive });
      return model.call(request);
    },
  };
}

/** The persona as it is on the disk now, and the files that changed last with their times: what many bots put into each request. */
function naiveView(memory: string): NaiveView {
  const names = readdirSync(memory, { recursive: true, encoding: "utf8" }).filter((name) => !/^\.git(\/|$)/.test(name));
  const files = names.flatMap((name) => {
    const found = statSync(join(memory, name), { throwIfNoEntry: false });
    return found?.isFile() ? [{ name, size: found.size, mtime: found.mtime }] : [];
  });
  files.sort((a, b) => b.mtime.getTime() - a.mtime.getTime() || (a.name < b.name ? -1 : 1));
  const lines = files.slice(0, listedMax).map(({ name, size, mtime }) => `${mtime.toISOString()} ${size} ${name}`);
  return { persona: readFileSync(join(memory, "PERSONA.md"), "utf8"), listing: lines.join("\n") };
}

process.on("disconnect", () => process.exit(1)); // the demo is gone, however that came
const config = JSON.parse(process.argv[2] ?? "") as WorkerConfig;
const { redis, mongo, namespace, concurrency } = config;
const starting = startWorker({ redis, mongo, namespace, concurrency, bots: botsOf(config) });
process.on("message", async (message) => {
  if (message !== "stop") return;
  await (await starting).close(drainMs);
  process.exit(0);
});
await starting;
process.send?.("ready");
