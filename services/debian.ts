// Debian's redis-server, unpacked into the cache: nothing is installed, no service is enabled or started, and removing the cache undoes it.
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { isCode, madeOnce } from "./cache.ts";
import { mustRun, run, which } from "./process.ts";

const timeLimitMs = 300_000;
const packages = ["redis-server", "redis-tools"];

/** A program that needs libraries from beside it. */
export type Program = { path: string; env: NodeJS.ProcessEnv };

/** Redis from Debian's package, downloaded the first time (root only: apt asks for that); or the reason why not. Throws if apt fails. */
export async function debianRedis(log: (line: string) => void): Promise<Program | { reason: string }> {
  if (process.platform !== "linux" || !(await which("apt-get")) || !(await which("dpkg-deb"))) return { reason: "this is no Debian" };
  if (process.getuid?.() !== 0) return { reason: "only root may fetch it; run: sudo apt-get install redis-server" };
  const folder = await madeOnce(
    "debian-redis",
    async (draft) => {
      log("installing Debian package redis-server into the cache (once)…");
      await download(draft, log);
      for (const file of (await readdir(draft)).filter((name) => name.endsWith(".deb"))) {
        await mustRun(["dpkg-deb", "-x", join(draft, file), draft], { timeLimitMs });
      }
      const { path, env } = await programIn(draft);
      await mustRun(["env", `LD_LIBRARY_PATH=${env.LD_LIBRARY_PATH}`, path, "--version"], { timeLimitMs });
    },
    log,
  );
  return programIn(folder);
}

/** The packages, and those libraries of theirs that this machine lacks. */
async function download(folder: string, log: (line: string) => void): Promise<void> {
  const options = ["-o", `Dir::Cache::archives=${folder}/`, "-o", "APT::Sandbox::User=root"];
  const install = ["apt-get", "install", "--yes", "--no-install-recommends", "--download-only", ...options, "redis-server"];
  if ((await run(install, { timeLimitMs })).code !== 0) {
    log("updating Debian's package lists first…");
    await mustRun(["apt-get", "update"], { timeLimitMs });
    await mustRun(install, { timeLimitMs });
  }
  // What is installed already was not downloaded just now, but is needed here as a whole.
  const present = await readdir(folder);
  const missing = packages.filter((name) => !present.some((file) => file.startsWith(`${name}_`)));
  if (missing.length > 0) await mustRun(["apt-get", "download", "-o", "APT::Sandbox::User=root", ...missing], { timeLimitMs, cwd: folder });
}

async function programIn(folder: string): Promise<Program> {
  const lib = join(folder, "usr/lib");
  const libraries = await readdir(lib).catch((error: unknown) => {
    if (isCode(error, "ENOENT")) return [];
    throw error;
  });
  const path = [...libraries.map((name) => join(lib, name)), process.env.LD_LIBRARY_PATH].filter(Boolean).join(":");
  return { path: join(folder, "usr/bin/redis-server"), env: { ...process.env, LD_LIBRARY_PATH: path } };
}
