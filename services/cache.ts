// What is fetched or built once and kept: one folder per thing, complete or absent. Two commands at the same time take turns.
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** How long one command waits for another that builds the same thing. A Maven build on a slow line takes minutes. */
const lockWaitMs = 600_000;
const lockPollMs = 100;
/** A lock without a readable owner is being taken at this moment, or was left by a machine that lost power. */
const ownerlessLockMs = 10_000;

/** The folder of cached downloads and builds: `$XDG_CACHE_HOME/headfast`, or `~/.cache/headfast`. It may not exist yet. */
export function cacheFolder(): string {
  return join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "headfast");
}

/**
 * The folder of a thing that is made once. `make` fills an empty folder, which gets its name only when `make` has returned: a folder of that name is
 * whole. Throws what `make` throws, and then leaves nothing. `log` hears of it when another command is at it and we wait.
 */
export async function madeOnce(
  name: string,
  make: (folder: string) => Promise<void>,
  log: (line: string) => void = () => undefined,
): Promise<string> {
  const folder = join(cacheFolder(), name);
  if (await exists(folder)) return folder;
  await mkdir(cacheFolder(), { recursive: true });
  const unlock = await lock(`${folder}.lock`, () => log(`waiting for another command that is making ${name}…`));
  try {
    if (await exists(folder)) return folder;
    await removeDeadDrafts(name);
    const draft = `${folder}.${process.pid}.new`;
    await mkdir(draft);
    try {
      await make(draft);
      await rename(draft, folder).catch(async (error: unknown) => {
        if (!(await exists(folder))) throw error;
      });
    } finally {
      await rm(draft, { recursive: true, force: true });
    }
    return folder;
  } finally {
    await unlock();
  }
}

/** Remembers for `recentFailure` that a slow attempt failed, and why. */
export async function rememberFailure(name: string, reason: string): Promise<void> {
  await mkdir(cacheFolder(), { recursive: true });
  const file = join(cacheFolder(), `${name}.failed`);
  await writeFile(`${file}.${process.pid}.new`, reason);
  await rename(`${file}.${process.pid}.new`, file);
}

/** Why an attempt failed within the last `maxAgeMs`, or undefined. */
export async function recentFailure(name: string, maxAgeMs: number): Promise<string | undefined> {
  const file = join(cacheFolder(), `${name}.failed`);
  const info = await statOrUndefined(file);
  return info && Date.now() - info.mtimeMs < maxAgeMs ? await readFile(file, "utf8") : undefined;
}

async function exists(path: string): Promise<boolean> {
  return (await statOrUndefined(path)) !== undefined;
}

async function statOrUndefined(path: string) {
  try {
    return await stat(path);
  } catch (error) {
    if (isCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

async function removeDeadDrafts(name: string): Promise<void> {
  for (const entry of await readdir(cacheFolder())) {
    const pid = entry.startsWith(`${name}.`) && /^\.(\d+)\.new$/.exec(entry.slice(name.length))?.[1];
    if (pid && (Number(pid) === process.pid || !isAlive(Number(pid))))
      await rm(join(cacheFolder(), entry), { recursive: true, force: true });
  }
}

/**
 * Making a directory is atomic: who makes it has the lock. The process id in it tells whether its owner still lives. It saves work and is not what keeps
 * the cache whole (drafts of their own and one rename do): should two commands take over a dead one's lock at once, both build and the first is kept.
 */
async function lock(folder: string, onWait: () => void): Promise<() => Promise<void>> {
  const deadline = Date.now() + lockWaitMs;
  let told = false;
  for (;;) {
    try {
      await mkdir(folder);
      await writeFile(join(folder, "pid"), String(process.pid));
      return () => rm(folder, { recursive: true, force: true });
    } catch (error) {
      if (!isCode(error, "EEXIST")) throw error;
    }
    if (await isStale(folder)) {
      await rm(folder, { recursive: true, force: true });
      continue;
    }
    if (Date.now() > deadline)
      throw new Error(`another command has held ${folder} for ${lockWaitMs / 1000} s; remove it if none is running`);
    if (!told) onWait();
    told = true;
    await sleep(lockPollMs);
  }
}

async function isStale(folder: string): Promise<boolean> {
  const info = await statOrUndefined(folder);
  if (!info) return false;
  const pid = await readFile(join(folder, "pid"), "utf8").then(Number, () => 0);
  if (pid > 0) return !isAlive(pid);
  return Date.now() - info.mtimeMs > ownerlessLockMs;
}

/** Whether a process of this id exists (on this machine; it may belong to somebody else). */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return isCode(error, "EPERM");
  }
}

/** Whether an error carries this code of the operating system. */
export function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
