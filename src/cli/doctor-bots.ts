/** What `doctor` finds out about the config's bots and their Memory Repositories. */
import { limits } from "../domain/limits.ts";
import type { Bot, MemoryRepository } from "../domain/ports.ts";
import { type Check, failedBy } from "./doctor-check.ts";

/** One after the other: a look costs what a `git status` costs. */
export async function checkBots(bots: readonly Bot[]): Promise<Check[]> {
  const checks: Check[] = [];
  for (const bot of bots) {
    if (bot.memory === null) checks.push({ check: `memory of ${bot.name}`, status: "ok", detail: "this bot has no Memory Repository" });
    else checks.push(...(await checkMemory(bot.name, bot.memory)));
  }
  return checks;
}

async function checkMemory(bot: string, memory: MemoryRepository): Promise<Check[]> {
  const look = await checkLook(`memory of ${bot}`, memory);
  return look.status === "ok" ? [look, await checkPersona(`persona of ${bot}`, memory)] : [look];
}

async function checkLook(check: string, memory: MemoryRepository): Promise<Check> {
  try {
    const look = await memory.look();
    if (look.state === "not_ready")
      return {
        check,
        status: "degraded",
        detail: `not ready: ${look.reason}`,
        advice: "git init it where the config says; new sessions go on without a persona until then",
      };
    const { branch, head, manifest } = look.seen;
    return {
      check,
      status: "ok",
      detail: `ready: ${manifest.length} files, ${branch ?? "detached"}${head === null ? ", no commit yet" : ` at ${head.slice(0, 12)}`}`,
    };
  } catch (error) {
    return failedBy(
      check,
      error,
      "mend the repository: new sessions wait for it, others go on and are told that it could not be looked at",
    );
  }
}

async function checkPersona(check: string, memory: MemoryRepository): Promise<Check> {
  try {
    const persona = await memory.persona();
    if (persona.state === "not_ready") return { check, status: "degraded", detail: `not ready: ${persona.reason}` };
    const bytes = Buffer.byteLength(persona.body);
    if (bytes === 0)
      return {
        check,
        status: "degraded",
        detail: "PERSONA.md is empty or absent: new sessions freeze an empty persona",
        advice: "write the persona below PERSONA.md's front matter before sessions begin",
      };
    return { check, status: "ok", detail: `${bytes} of ${limits.personaBytesMax} bytes` };
  } catch (error) {
    return failedBy(check, error, "mend PERSONA.md: new sessions wait for it");
  }
}
