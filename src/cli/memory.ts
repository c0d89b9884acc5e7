/** `headfast memory`: what changed in a Memory Repository since a session heard of it, and the wish for a look now. */
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { HeadfastError } from "../domain/errors.ts";
import { checkBotName } from "../domain/ids.ts";
import { limits } from "../domain/limits.ts";
import type { MemoryRepository } from "../domain/ports.ts";
import { type MemoryDiff, memoryDiff } from "../host/memory-diff.ts";
import { type Headfast, memoryAt } from "../main.ts";
import { type Call, type Command, type ExitCode, exit } from "./command.ts";
import { botNamed, configuredBots, requiredBots } from "./config-file.ts";
import { withHost } from "./connect.ts";
import { shown, shownIndented } from "./output.ts";
import { limitOf } from "./session.ts";
import { UsageError } from "./usage.ts";

async function diff(call: Call): Promise<ExitCode> {
  const bot = checkBotName(call.options.required("bot"));
  const look = await (await repositoryOf(call, bot)).look();
  if (look.state === "not_ready") throw new HeadfastError("memory_unreadable", `the Memory Repository is not ready: ${look.reason}`);
  const diffs = await withHost(call, async (hf) => {
    const named = call.options.text("session");
    const sessions = named === undefined ? (await hf.sessions.list({ bot, limit: limitOf(call) })).map(({ session }) => session) : [named];
    return Promise.all(sessions.map((session) => memoryDiff(hf.internals.ledger, session, look.seen)));
  });
  const { state, branch, head } = look.seen;
  call.out.answer({ bot, now: { state, branch, head }, sessions: diffs }, () =>
    diffs.length === 0 ? `${shown(bot)} has no sessions` : diffs.map(diffText).join("\n\n"),
  );
  return diffs.some(({ result }) => result === "changed") ? exit.ok : exit.nothing;
}

async function repositoryOf(call: Call, name: string): Promise<MemoryRepository> {
  const folder = call.options.text("memory");
  if (folder !== undefined && !existsSync(resolve(call.io.cwd, folder)))
    throw new UsageError(`--memory ${folder}: there is no such folder`);
  if (folder !== undefined) return memoryAt(resolve(call.io.cwd, folder));
  const { memory } = botNamed(await requiredBots(call), name);
  if (memory !== null) return memory;
  throw new HeadfastError("configuration", `bot ${JSON.stringify(name)} has no Memory Repository in the config; --memory DIR names one`);
}

function diffText({ session, result, notice }: MemoryDiff): string {
  if (notice !== null) return shownIndented(`${shown(session)}:\n  `, notice);
  return `${shown(session)}: ${result === "unchanged" ? "nothing changed since it last heard" : "no turn looked at the repository yet"}`;
}

/** Redis or MongoDB away is no failure of the commit that asked: exit 4, and the look before the next turn makes up for it. */
async function observe(call: Call): Promise<ExitCode> {
  const bot = checkBotName(call.options.required("bot"));
  try {
    const served = await configuredBots(call);
    if (served !== undefined) botNamed(served, bot);
    await withHost(call, async (hf) => {
      if (served === undefined) await requireSessions(hf, bot);
      await hf.observe(bot, "asked on the command line");
    });
  } catch (error) {
    if (!(error instanceof HeadfastError) || (error.code !== "queue_unavailable" && error.code !== "store_unavailable")) throw error;
    call.out.answer({ bot, asked: false, error: { code: error.code, message: error.message } }, () => "");
    call.out.remark(`headfast: ${error.code}: the look could not be asked for; the one before each session's next turn makes up for it`);
    return exit.degraded;
  }
  call.out.answer({ bot, asked: true }, () => `asked: a worker that serves ${shown(bot)} looks now`);
  return exit.ok;
}

/** Without a config the sessions say which bots there are. @throws `bot_not_found` naming them */
async function requireSessions(hf: Headfast, bot: string): Promise<void> {
  if ((await hf.sessions.list({ bot, limit: 1 })).length > 0) return;
  const known = [...new Set((await hf.sessions.list({ limit: limits.listMax })).map((owner) => owner.bot))].sort();
  const named = known.length === 0 ? "no bot has any yet" : `those of ${known.map((name) => JSON.stringify(name)).join(", ")} are there`;
  throw new HeadfastError(
    "bot_not_found",
    `no session belongs to bot ${JSON.stringify(bot)}, so nobody would hear of a look: ${named}; --config FILE names bots without sessions`,
  );
}

const botOption = { flag: "--bot <name>", text: "Whose repository" };

export const memoryCommands: readonly Command[] = [
  {
    name: "memory diff",
    text: "The net change between what a session heard and now; exit 3 where there is none",
    options: [
      botOption,
      { flag: "--session <id>", text: "One session; else the bot's latest" },
      { flag: "--memory <dir>", text: "The repository's folder, instead of the config's" },
      { flag: "--limit <n>", text: "At most so many sessions, 1 to 1000; default 100" },
    ],
    examples: ["headfast memory diff --bot ada --session tg:42", "headfast memory diff --bot ada --memory ./memory"],
    run: diff,
  },
  {
    name: "memory observe",
    text: "Ask for a look now, as a post-commit hook does; exit 4 where a service is away",
    options: [botOption],
    examples: ["headfast memory observe --bot ada || true"],
    run: observe,
  },
];
