// Whether a server that we found can be used. Looking changes nothing on it.
import { once } from "node:events";
import { connect } from "node:net";

const connectMs = 2_000;
/** BullMQ's scripts need Redis 6.2; the MongoDB driver speaks to wire version 9 (MongoDB 4.4) and up. */
const redisVersionMin = [6, 2] as const;
const wireVersionMin = 9;

/** The usual end of a stand-in's version text; a real MongoDB has no such one. */
const standInSuffix = "stand-in";

/** Whether something listens on a loopback port. */
export async function isListening(port: number): Promise<boolean> {
  const socket = connect({ host: "127.0.0.1", port, timeout: connectMs });
  socket.on("timeout", () => socket.destroy(new Error("timeout")));
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false; // refused, or silent: nobody to talk to
  } finally {
    socket.destroy();
  }
}

/** Why a Redis cannot be used, or undefined if it can. Never throws. */
export async function redisFault(url: string): Promise<string | undefined> {
  const { Redis } = await import("ioredis");
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: connectMs,
    commandTimeout: connectMs,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  let lastError: Error | undefined;
  redis.on("error", (error: Error) => {
    lastError = error;
  });
  try {
    await redis.connect();
    return redisInfoFault(await redis.info());
  } catch (error) {
    const cause = lastError ?? error;
    return `it does not answer (${cause instanceof Error ? cause.message : String(cause)})`;
  } finally {
    redis.disconnect();
  }
}

/** Why a Redis whose INFO is this cannot be used, or undefined if it can. */
export function redisInfoFault(info: string): string | undefined {
  const field = (name: string) => new RegExp(`^${name}:(.*?)\r?$`, "m").exec(info)?.[1] ?? "";
  const version = field("redis_version");
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major < redisVersionMin[0] || (major === redisVersionMin[0] && minor < redisVersionMin[1])) {
    return `its version is ${version || "unknown"}, and ${redisVersionMin.join(".")} is the least that works`;
  }
  const policy = field("maxmemory_policy");
  if (policy !== "noeviction") return `its maxmemory-policy is ${policy || "unknown"}: it would drop queued work, only noeviction is safe`;
  return undefined;
}

/** What was learned about a MongoDB: a fault, or whether it is the stand-in. Never throws. */
export async function inspectMongo(url: string): Promise<{ fault?: string; standIn: boolean }> {
  const { MongoClient } = await import("mongodb");
  let client: InstanceType<typeof MongoClient> | undefined;
  try {
    client = new MongoClient(url, { serverSelectionTimeoutMS: connectMs, connectTimeoutMS: connectMs, socketTimeoutMS: connectMs });
    const admin = client.db("admin");
    const hello = await admin.command({ isMaster: 1 });
    const build = await admin.command({ buildInfo: 1 });
    const wire = Number(hello.maxWireVersion);
    if (wire < wireVersionMin)
      return { fault: `its wire version is ${wire}, and ${wireVersionMin} is the least that works`, standIn: false };
    return { standIn: String(build.version).endsWith(standInSuffix) };
  } catch (error) {
    return { fault: `it does not answer as needed (${error instanceof Error ? error.message : String(error)})`, standIn: false };
  } finally {
    await client?.close();
  }
}
