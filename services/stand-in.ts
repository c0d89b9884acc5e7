// The MongoDB stand-in: fetched and compiled once, then a plain java process.
import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { madeOnce } from "./cache.ts";
import { mustRun, which } from "./process.ts";

const source = fileURLToPath(new URL("./stand-in/", import.meta.url));
const buildMs = 600_000;
const tellEveryMs = 10_000;
const javaMin = 17;

// A quick start matters more here than peak speed, and one server must not eat the machine.
const javaFlags = [
  "-XX:TieredStopAtLevel=1",
  "-XX:+UseSerialGC",
  "-Xshare:auto",
  "-Xms64m",
  "-Xmx768m",
  "-Dslf4j.internal.verbosity=ERROR",
];

/** The command line that starts the stand-in, without its own arguments (see StandIn.java); built the first time. Or the reason why not. Throws if Maven or javac fails. */
export async function standInCommand(log: (line: string) => void): Promise<string[] | { reason: string }> {
  const tools = await Promise.all(["java", "javac", "mvn"].map(which));
  const missing = ["java", "javac", "mvn"].filter((_, i) => !tools[i]);
  if (missing.length > 0) return { reason: `it needs a JDK ${javaMin} or newer with Maven; not on the PATH: ${missing.join(", ")}` };
  const files = (await readdir(source)).filter((name) => /\.java$|^pom\.xml$/.test(name)).sort();
  const hash = createHash("sha256");
  for (const name of files) hash.update(`${name}\0`).update(await readFile(join(source, name)));
  const folder = await madeOnce(`stand-in-${hash.digest("hex").slice(0, 12)}`, (draft) => build(draft, files, log), log);
  return ["java", ...javaFlags, "-cp", [join(folder, "classes"), join(folder, "lib", "*")].join(delimiter), "StandIn"];
}

async function build(folder: string, files: readonly string[], log: (line: string) => void): Promise<void> {
  log("building the MongoDB stand-in with Maven (once, about half a minute)…");
  const began = Date.now();
  const timer = setInterval(() => log(`still building the MongoDB stand-in, ${Math.round((Date.now() - began) / 1000)} s…`), tellEveryMs);
  try {
    const lib = join(folder, "lib");
    const fetch = [
      "mvn",
      "--batch-mode",
      "--quiet",
      "--file",
      join(source, "pom.xml"),
      "dependency:copy-dependencies",
      `-DoutputDirectory=${lib}`,
    ];
    await mustRun(fetch, { timeLimitMs: buildMs });
    const sources = files.filter((name) => name.endsWith(".java")).map((name) => join(source, name));
    await mustRun(["javac", "--release", String(javaMin), "-cp", join(lib, "*"), "-d", join(folder, "classes"), ...sources], {
      timeLimitMs: buildMs,
    });
  } finally {
    clearInterval(timer);
  }
}
