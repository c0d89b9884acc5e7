// docker compose with this repository's file, when its plugin and an engine answer.
import { access } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { Found, Refusal } from "./order.ts";
import { mustRun, onFreePort, run, startGuarded, which } from "./process.ts";

const file = fileURLToPath(new URL("../docker-compose.yml", import.meta.url));
const probeMs = 5_000;
const pullMs = 600_000;
const downMs = 60_000;

/**
 * One service of the compose file, run in the foreground under a project name of our own, so that it ends with us. Its port on this machine is handed to the
 * file as HEADFAST_<SERVICE>_PORT, and read back from docker, in case the file has one of its own. Throws if it does not get ready.
 */
export async function composeServer(service: "redis" | "mongo", innerPort: number, log: (line: string) => void): Promise<Found | Refusal> {
  const unusable = await whyUnusable();
  if (unusable) return { reason: unusable };
  log(`starting ${service} with docker compose (its image is pulled the first time)…`);
  const compose = ["docker", "compose", "-f", file, "-p", `headfast-${service}-${process.pid}`];
  const down = () => run([...compose, "down", "--volumes"], { timeLimitMs: downMs });
  const start = (port: number) =>
    startGuarded([...compose, "up", "--no-color", service], {
      ready: service === "redis" ? /Ready to accept connections/ : /Waiting for connections/,
      readyMs: pullMs,
      env: { ...process.env, [`HEADFAST_${service.toUpperCase()}_PORT`]: String(port) },
    });
  try {
    const { process: server } = await onFreePort(0, start);
    const answer = await mustRun([...compose, "port", service, String(innerPort)], { timeLimitMs: probeMs });
    const port = /:(\d+)\s*$/.exec(answer)?.[1];
    if (!port) throw new Error(`"docker compose port" gave no port: ${answer.trim()}`);
    const stop = async () => {
      await server.stop();
      await down();
    };
    return { url: `${service === "redis" ? "redis" : "mongodb"}://127.0.0.1:${port}`, origin: "docker compose", started: true, stop };
  } catch (error) {
    await down(); // the one in the foreground ends with it
    throw error;
  }
}

async function whyUnusable(): Promise<string | undefined> {
  if (!(await which("docker"))) return "no docker on the PATH";
  const hasFile = await access(file).then(
    () => true,
    () => false,
  );
  if (!hasFile) return "this repository has no docker-compose.yml";
  const [plugin, engine] = await Promise.all([
    run(["docker", "compose", "version"], { timeLimitMs: probeMs }),
    run(["docker", "info", "--format", "{{.ServerVersion}}"], { timeLimitMs: probeMs }),
  ]);
  if (plugin.code !== 0) return "docker has no compose plugin";
  if (engine.code !== 0) return "no docker engine answers";
  return undefined;
}
