/** A MongoDB that stands but says nothing more: a send ends within its bound, and the same send settles what became of it. */
import { limits } from "../../src/domain/limits.ts";
import { Headfast } from "../../src/main.ts";
import { realSystem } from "../../src/system.ts";
import { dropDatabase } from "../support/mongo.ts";
import { refusal } from "../support/refusal.ts";
import { mongoUrl, redisUrl, uniqueName } from "../support/services.ts";
import { assert, suite } from "../support/suite.ts";
import { tcpProxy } from "../support/tcp-proxy.ts";

const test = suite("host outages", { timeoutMs: 60_000 });

test("a send to a frozen MongoDB ends at its bound with store_unavailable; sent again it is one turn", async () => {
  const namespace = uniqueName("frozen").slice(0, 38);
  const asked: number[] = [];
  // The bound of 10 s comes at once when it is asked for: nothing else of the clock is touched.
  const system = {
    ...realSystem,
    sleep: (ms: number, signal?: AbortSignal) => {
      if (ms !== limits.sendMsMax) return realSystem.sleep(ms, signal);
      asked.push(ms);
      return realSystem.sleep(asked.length === 2 ? 200 : ms, signal);
    },
  };
  const proxy = await tcpProxy(mongoUrl());
  const hf = await Headfast.connect({ redis: redisUrl(), mongo: proxy.url, namespace, parts: { system } });
  const request = { bot: "ada", session: "s", turnId: "2", input: "hello" };
  try {
    await hf.turns.send({ ...request, turnId: "1" });
    await proxy.cut("silent");
    const error = await refusal(hf.turns.send(request));
    assert.equal([error.code, error.retryable], ["store_unavailable", true]);
    assert.match(error.message, /within 10 s.*send it again with the same turnId/);
  } finally {
    await proxy.close();
    await hf.close();
  }
  const healthy = await Headfast.connect({ redis: redisUrl(), mongo: mongoUrl(), namespace });
  try {
    await healthy.turns.send(request);
    assert.is((await healthy.sessions.get("s")).turns, 2);
  } finally {
    await healthy.close();
    await dropDatabase(namespace);
  }
});

test.run();
