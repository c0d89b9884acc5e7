import { Headfast } from "/work/main/src/index.ts";
import { uniqueName } from "/work/main/test/support/services.ts";
import { dropDatabases } from "/work/main/test/support/rig/rig.ts";
const mode = process.argv[2];
const namespace = uniqueName("leak");
const c = { redis: process.env.HEADFAST_REDIS_URL!, mongo: process.env.HEADFAST_MONGO_URL!, namespace };
const host = await Headfast.connect(c);
if (mode !== "idle") {
  const n = 60;
  const sent = await Promise.all(Array.from({ length: n }, (_, i) => host.turns.send({ bot: "ada", session: `s${i}`, turnId: "t", input: "x" })));
  if (mode === "wait") await Promise.allSettled(sent.map((t) => host.turns.wait(t, { timeoutMs: 500 })));
}
await host.close();
console.log("closed", process.getActiveResourcesInfo().length);
await dropDatabases(c.mongo, [namespace]);
console.log("dropped", process.getActiveResourcesInfo().length);
setTimeout(() => { console.log("later", process.getActiveResourcesInfo().join()); process.exit(); }, 3000).unref();
