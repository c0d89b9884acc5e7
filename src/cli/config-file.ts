/** The config file: a module that exports `bots`. */
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { HeadfastError } from "../domain/errors.ts";
import type { Bot } from "../domain/ports.ts";
import type { Call } from "./command.ts";
import { UsageError } from "./usage.ts";

const defaultFile = "headfast.config.mjs";

/** The config's bots; undefined where none is named and the default file does not exist. @throws `configuration`, {UsageError} */
export async function configuredBots({ options, io }: Pick<Call, "options" | "io">): Promise<readonly Bot[] | undefined> {
  const named = options.text("config");
  const path = resolve(io.cwd, named ?? defaultFile);
  if (existsSync(path)) return load(path);
  if (named === undefined) return undefined;
  throw new UsageError(`--config ${named}: there is no such file`);
}

/** For commands that cannot do without. @throws `configuration`, {UsageError} */
export async function requiredBots(call: Pick<Call, "options" | "io">): Promise<readonly Bot[]> {
  const bots = await configuredBots(call);
  if (bots !== undefined) return bots;
  throw new UsageError(`a config is needed: --config FILE, or ${defaultFile} in this folder; it exports bots: [defineBot({ … })]`);
}

/** One bot by name. @throws `bot_not_found` naming those there are */
export function botNamed(bots: readonly Bot[], name: string): Bot {
  const bot = bots.find((known) => known.name === name);
  if (bot !== undefined) return bot;
  throw new HeadfastError(
    "bot_not_found",
    `the config has no bot ${JSON.stringify(name)}; it has ${bots.map((known) => JSON.stringify(known.name)).join(", ")}`,
  );
}

async function load(path: string): Promise<readonly Bot[]> {
  try {
    return await ended(
      import(pathToFileURL(path).href).then((module) => botsOf(module as Record<string, unknown>, path)),
      path,
    );
  } catch (error) {
    if (error instanceof HeadfastError) throw error;
    throw new HeadfastError("configuration", `${path}: ${reasonOf(error)}`, { cause: error });
  }
}

/** A config that awaits what nothing will settle would end the process without a word. */
async function ended<T>(loading: Promise<T>, path: string): Promise<T> {
  let idle = (): void => undefined;
  const never = new Promise<never>((_, reject) => {
    const message = `${path}: its bots never came: it awaits a promise that nothing will settle`;
    idle = () => reject(new HeadfastError("configuration", message));
  });
  process.once("beforeExit", idle);
  try {
    return await Promise.race([loading, never]);
  } finally {
    process.off("beforeExit", idle);
  }
}

function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code !== "ERR_UNKNOWN_FILE_EXTENSION") return message ?? String(error);
  return `node ${process.version} does not load TypeScript by itself: run headfast under tsx (node --import tsx), use Node 22.18 or newer, or name a .mjs file`;
}

async function botsOf(module: Record<string, unknown>, path: string): Promise<readonly Bot[]> {
  const { bots } = module;
  const given: unknown = typeof bots === "function" ? await (bots as () => unknown)() : bots;
  const wrong = (what: string): HeadfastError =>
    new HeadfastError(
      "configuration",
      `${path}: ${what}; export const bots = [defineBot({ … })], or an async function that gives such an array`,
    );
  if (!Array.isArray(given)) throw wrong(bots === undefined ? "it does not export bots" : "bots is no array");
  if (given.length === 0) throw wrong("bots is empty");
  const odd = given.findIndex((bot) => !isBot(bot));
  if (odd >= 0) throw wrong(`bots[${odd}] is not what defineBot gives`);
  return given as Bot[];
}

function isBot(value: unknown): value is Bot {
  const bot = value as Partial<Bot> | null;
  return (
    typeof bot?.name === "string" &&
    typeof bot.model?.call === "function" &&
    Array.isArray(bot.tools) &&
    Array.isArray(bot.rolePrompts) &&
    bot.memory !== undefined
  );
}
