/** What `doctor` finds out about the config's bots and their Memory Repositories. */
import { limits } from "../domain/limits.ts";
import type { Bot, MemoryRepository } from "../domain/ports.ts";
import { type Check, failedBy } from "./doctor-check.ts";

/** One after the other: a look costs what a `git status` costs. What is the same of several bots is said once. */
export async function checkBots(bots: readonly Bot[]): Promise<Check[]> {
  const told = new Map<string, Check>();
  for (const { name, memory } of bots) {
    for (const { check: subject, ...found } of await checkBot(memory)) {
      const key = JSON.stringify([subject, found]);
      const same = told.get(key);
      told.set(key, { check: same === undefined ? `${subject} of ${name}` : `${same.check}, ${name}`, ...found });
    }
  }
  return [...told.values()];
}

async function checkBot(memory: MemoryRepository | null): Promise<Check[]> {
  if (memory === null) return [{ check: "memory", status: "ok", detail: "this bot has no Memory Repository" }];
  const look = await checkLook("memory", memory);
  return look.status === "ok" ? [look, await checkPersona("persona", memory)] : [look];
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

const personaAdvice =
  "new sessions freeze it like this: mend PERSONA.md (docs/persona.md says what is kept), or leave it where it is meant";

async function checkPersona(check: string, memory: MemoryRepository): Promise<Check> {
  try {
    const persona = await memory.persona();
    if (persona.state === "not_ready") return { check, status: "degraded", detail: `not ready: ${persona.reason}` };
    const bytes = Buffer.byteLength(persona.body);
    if (bytes === 0)
      return {
        check,
        status: "degraded",
        detail: ["PERSONA.md is empty or absent: new sessions freeze an empty persona", ...(persona.warnings ?? [])].join("; "),
        advice: "write the persona below PERSONA.md's front matter before sessions begin",
      };
    const detail = `${bytes} of ${limits.personaBytesMax} bytes`;
    if (persona.warnings === undefined) return { check, status: "ok", detail };
    return { check, status: "degraded", detail: `${detail}; ${persona.warnings.join("; ")}`, advice: personaAdvice };
  } catch (error) {
    return failedBy(check, error, "mend PERSONA.md: new sessions wait for it");
  }
}
