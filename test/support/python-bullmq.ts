/** BullMQ's Python client, installed once into the cache folder: proof that the wire contract is not only ours. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { madeOnce } from "../../services/cache.ts";

const run = promisify(execFile);
const version = "3.4.4";

/** The path of a Python that can `import bullmq`. Installs what a bare Debian lacks when it runs as root. */
export async function pythonWithBullmq(): Promise<string> {
  const folder = await madeOnce(`python-bullmq-${version}`, async (draft) => {
    await makeEnvironment(draft);
    await run(join(draft, "bin/python"), ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", `bullmq==${version}`]);
  });
  return join(folder, "bin/python");
}

async function makeEnvironment(folder: string): Promise<void> {
  const make = (python: string): Promise<unknown> => run(python, ["-m", "venv", "--clear", folder]);
  try {
    await make("python3");
  } catch (error) {
    if (process.getuid?.() !== 0)
      throw new Error("this test needs python3 with its venv module (Debian: sudo apt-get install python3-venv)", { cause: error });
    await run("apt-get", ["update", "-qq"]);
    await run("apt-get", ["install", "-y", "-qq", "python3-venv"], { env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" } });
    await make("/usr/bin/python3");
  }
}
