/** The examples of docs/wire-contract.md are run as they stand there: the turn arrives, the session is woken. */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { encodeId, shardOf, turnJobId } from "../../src/queues/names.ts";
import { pythonWithBullmq } from "../support/python-bullmq.ts";
import { Stage } from "../support/queue-records.ts";
import { RedisWorld } from "../support/redis-world.ts";
import { redisUrl } from "../support/services.ts";
import { assert, suite } from "../support/suite.ts";

const run = promisify(execFile);
const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const page = readFileSync(join(root, "docs/wire-contract.md"), "utf8");
const test = suite("wire contract", { timeoutMs: 110_000 });

const session = "slack:C024 (日本)~'*!";
const turn = {
  turn_id: "m/17:~'(é)",
  bot: "ada",
  input: "What changed? 🙂\n",
  user: { id: "U024BE7LH", name: "Ada" },
  deliver_to: "slack:C024",
};

/** The one block of code in that language. */
function example(language: string): string {
  const blocks = [...page.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, "gm"))];
  assert.is(blocks.length, 1, `blocks of ${language}`);
  return blocks[0]?.[1] as string;
}

/** `send` runs the example with `SEND` in its environment; twice, as a sender that was not sure. */
async function arrives(send: (env: NodeJS.ProcessEnv) => Promise<unknown>): Promise<void> {
  const world = new RedisWorld(redisUrl());
  try {
    const queues = await world.open({ shards: 3 });
    const env = { ...process.env, SEND: JSON.stringify({ url: world.url, namespace: world.namespace, shards: 3, session, turn }) };
    await send(env);
    await send(env);
    assert.equal(await queues.peek(session), [
      {
        jobId: turnJobId(turn.turn_id, 0),
        turnId: turn.turn_id,
        generation: 0,
        bot: "ada",
        input: turn.input,
        user: turn.user,
        deliverTo: turn.deliver_to,
      },
    ]);
    const stage = new Stage(async (lease) => {
      await queues.settle(lease.session, [queues.jobId(turn.turn_id, 0)]);
      return { kind: "idle" };
    });
    const runner = await queues.work(stage.handler, { concurrency: 2 });
    await stage.ended(1);
    await runner.close(1_000);
    assert.equal(stage.order, [session]);
    const left = await world.client.keys(`{${world.namespace}:*}*${encodeId(session).replace(/[*?[\]\\]/g, "\\$&")}*`);
    assert.equal(left, []);
  } finally {
    await world.dispose();
  }
}

test("a turn sent with BullMQ for Node.js by the documented code arrives and wakes its session", async () => {
  const code = example("js");
  await arrives((env) => run(process.execPath, ["--input-type=module", "-e", code], { env, cwd: root }));
});

test("a turn sent with BullMQ's Python client by the documented code arrives and wakes its session", async () => {
  const python = await pythonWithBullmq();
  const code = example("python");
  await arrives((env) => run(python, ["-c", code], { env }));
});

test("the documented encodings are the ones in use", () => {
  const rows = [...page.matchAll(/^\| `([^`]+)` \| `(~[^`]+)` \|$/gm)].map(([, id, encoded]) => [id as string, encoded as string] as const);
  assert.is(rows.length, 5);
  for (const [id, encoded] of rows) assert.is(encodeId(id), encoded);
  assert.is(turnJobId("m/17", 0), "~m%2F17~0");
  assert.is(shardOf("tg:42", 1_024), 857);
});

test.run();
