/** The programs of the rig, each as one plain file, made once per test file: it starts in a quarter of the time that tsx takes. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/** Packages that are CommonJS expect these three. */
const banner = [
  'import { createRequire } from "node:module";',
  "const require = createRequire(import.meta.url);",
  "const __filename = import.meta.filename;",
  "const __dirname = import.meta.dirname;",
].join("\n");

let made: Promise<string> | undefined;

/** The path of the program made from `file`, which lies beside this one. */
export async function program(file: "worker-process" | "host-process"): Promise<string> {
  made ??= make();
  return join(await made, `${file}.mjs`);
}

async function make(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "headfast-programs-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const entryPoints = ["worker-process", "host-process"].map((name) => fileURLToPath(new URL(`./${name}.ts`, import.meta.url)));
  await build({
    entryPoints,
    outdir: folder,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    platform: "node",
    format: "esm",
    banner: { js: banner },
    sourcemap: "inline",
    logLevel: "error",
  });
  return folder;
}
