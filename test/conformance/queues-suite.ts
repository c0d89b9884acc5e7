/** What every `Queues` must do, in memory or on Redis. Each test has a world of its own. */
import type { Queues, TurnEvent } from "../../src/domain/ports.ts";
import { eventually, gate, Stage, turn } from "../support/queue-records.ts";
import { assert, suite } from "../support/suite.ts";

export interface QueuesWorld {
  queues: Queues;
  /** How many things the queues' server holds for the session: jobs, keys, wake-ups. */
  held(session: string): Promise<number>;
  /** Puts a job with this payload into the session's turn queue as another client would, waking nobody. */
  inject(session: string, jobId: string, payload: Record<string, unknown>): Promise<void>;
  dispose(): Promise<void>;
}

const oddIds = [
  "tg:42",
  "-1001234567",
  "123456",
  "a:b:c",
  "a:b:c:d",
  "0",
  "x".repeat(2_048),
  "😀\n",
  "../x",
  "__proto__",
  " ",
  "a~b",
  "a%7Eb",
  "{a}",
  "*",
  "日本",
];

/** Adds the suite and runs it. */
export function queuesSuite(name: string, make: () => Promise<QueuesWorld>): void {
  const test = suite(`queues: ${name}`);
  const within = (use: (world: QueuesWorld) => Promise<void>) => async (): Promise<void> => {
    const world = await make();
    try {
      await use(world);
    } finally {
      await world.dispose();
    }
  };

  test(
    "a turn is seen whole by the next peek, oldest first, under its job id",
    within(async ({ queues }) => {
      const user = { id: "U1", name: "Ada" };
      await queues.enqueue(turn("s", 1, { user, deliverTo: "C1", traceparent: "00-1-2-01" }));
      await queues.enqueue(turn("s", 2));
      const [first, second, ...more] = await queues.peek("s");
      const shared = { bot: "ada", generation: 0 };
      assert.equal(first, {
        ...shared,
        jobId: queues.jobId("turn-1", 0),
        turnId: "turn-1",
        number: 1,
        input: "input 1",
        user,
        deliverTo: "C1",
        traceparent: "00-1-2-01",
      });
      assert.equal(second, { ...shared, jobId: queues.jobId("turn-2", 0), turnId: "turn-2", number: 2, input: "input 2" });
      assert.equal(more, []);
      assert.equal(await queues.peek("other"), []);
    }),
  );

  test(
    "a large input stays out of the queue, a small one of many bytes too",
    within(async ({ queues }) => {
      await queues.enqueue(turn("s", 1, { input: "x".repeat(4_097) }));
      await queues.enqueue(turn("s", 2, { input: "日".repeat(1_365) }));
      await queues.enqueue(turn("s", 3, { input: "日".repeat(1_366) }));
      const heads = await queues.peek("s");
      assert.equal(
        heads.map((head) => "input" in head),
        [false, true, false],
      );
    }),
  );

  test(
    "adding a turn twice is one job; another generation is another job",
    within(async ({ queues }) => {
      for (const generation of [0, 0, 1]) await queues.enqueue(turn("s", generation + 1, { turnId: "t", generation }));
      assert.equal(
        (await queues.peek("s")).map((head) => head.jobId),
        [queues.jobId("t", 0), queues.jobId("t", 1)],
      );
    }),
  );

  test(
    "peek answers 16 heads at most; settle removes by id and answers the next",
    within(async ({ queues }) => {
      for (let number = 1; number <= 20; number += 1) await queues.enqueue(turn("s", number));
      const heads = await queues.peek("s");
      assert.is(heads.length, 16);
      const next = await queues.settle("s", [...heads.slice(0, 10).map((head) => head.jobId), "unknown"]);
      assert.equal(
        next.map((head) => ("number" in head ? head.number : 0)),
        [11, 12, 13, 14, 15, 16, 17, 18, 19, 20],
      );
      assert.equal(
        await queues.settle("s", [queues.jobId("turn-12", 0)]),
        next.filter((head) => head.jobId !== queues.jobId("turn-12", 0)),
      );
    }),
  );

  test(
    "I10: a session whose turns are settled and whose activation has ended leaves nothing",
    within(async ({ queues, held }) => {
      const settled: unknown[] = [];
      const stage = new Stage(async ({ session }) => {
        for (let heads = await queues.peek(session); heads.length > 0; ) {
          settled.push(...heads);
          heads = await queues.settle(
            session,
            heads.map((head) => head.jobId),
          );
        }
        return { kind: "idle" };
      });
      await queues.enqueue(turn("s", 1));
      await queues.enqueue(turn("s", 2));
      const heads = await queues.peek("s");
      assert.is(heads.length, 2);
      assert.ok((await held("s")) > 0);
      const runner = await queues.work(stage.handler, { concurrency: 2 });
      await stage.ended(1);
      await runner.close(1_000);
      assert.equal(settled, heads);
      assert.is(await held("s"), 0);
      assert.equal(await queues.settle("s", ["unknown"]), []);
      assert.is(await held("s"), 0);
    }),
  );

  test(
    "a burst while a session is idle is one activation",
    within(async ({ queues }) => {
      for (let number = 1; number <= 5; number += 1) await queues.enqueue(turn("s", number));
      await queues.wake("last");
      const stage = new Stage();
      const runner = await queues.work(stage.handler, { concurrency: 1 });
      await stage.began(1, "last");
      assert.equal(stage.order, ["s", "last"]);
      await runner.close(1_000);
    }),
  );

  test(
    "B3: any number of wake-ups while a session runs are exactly one more run, never beside the first",
    within(async ({ queues }) => {
      const inside = gate();
      const stage = new Stage(async ({ session }, nth) => {
        if (session === "s" && nth === 1) await inside.promise;
        return { kind: "idle" };
      });
      await queues.wake("s");
      const runner = await queues.work(stage.handler, { concurrency: 1 });
      await stage.began(1);
      await Promise.all([queues.enqueue(turn("s", 1)), queues.wake("s"), queues.wake("s")]);
      inside.open();
      await stage.began(2, "s");
      await queues.wake("last");
      await stage.began(1, "last");
      assert.is(stage.of("s").length, 2);
      assert.is(stage.most, 1);
      await runner.close(1_000);
    }),
  );

  test(
    "what a first peek knows from its wake-up may be old: settling it again answers what is there",
    within(async ({ queues, held }) => {
      const inside = gate();
      const seen: number[][] = [];
      const stage = new Stage(async ({ session }, nth) => {
        if (nth === 1) await inside.promise;
        for (let heads = await queues.peek(session); heads.length > 0; ) {
          seen.push(heads.map((head) => ("number" in head ? (head.number ?? 0) : 0)));
          heads = await queues.settle(
            session,
            heads.map((head) => head.jobId),
          );
        }
        return { kind: "idle" };
      });
      await queues.enqueue(turn("s", 1));
      await queues.enqueue(turn("s", 2));
      const runner = await queues.work(stage.handler, { concurrency: 1 });
      await stage.began(1);
      await queues.enqueue(turn("s", 3));
      inside.open();
      await stage.ended(2);
      assert.equal(seen, [[1], [2, 3], [3]]);
      await runner.close(1_000);
      assert.is(await held("s"), 0);
    }),
  );

  test(
    "wake-ups while a session is delayed run neither early nor twice; promote does; the job stays the same one",
    within(async ({ queues }) => {
      const stage = new Stage((_lease, nth) => (nth === 1 ? { kind: "delay", ms: 600_000, reason: "test" } : { kind: "idle" }));
      await queues.wake("s");
      const runner = await queues.work(stage.handler, { concurrency: 1 });
      await stage.ended(1);
      await queues.wake("before");
      await stage.began(1, "before");
      await queues.wake("s");
      await queues.wake("s");
      await queues.wake("last");
      await stage.began(1, "last");
      assert.is(stage.of("s").length, 1);
      await queues.promote("s");
      await stage.began(2, "s");
      const [first, second] = stage.of("s");
      assert.equal([first?.fresh, second?.fresh], [true, false]);
      assert.is(first?.stall.job, second?.stall.job);
      assert.equal(second?.stall.count, 0);
      await runner.close(1_000);
      await queues.promote("s");
      await queues.promote("never known");
    }),
  );

  test(
    "a delayed session runs again by itself when its time has come",
    within(async ({ queues }) => {
      const stage = new Stage((_lease, nth) => (nth === 1 ? { kind: "delay", ms: 30, reason: "test" } : { kind: "idle" }));
      await queues.wake("s");
      const runner = await queues.work(stage.handler, { concurrency: 1 });
      await stage.ended(2);
      await runner.close(1_000);
    }),
  );

  test(
    "who yields goes to the back",
    within(async ({ queues }) => {
      for (const session of ["a", "b", "c"]) await queues.wake(session);
      const stage = new Stage(({ session }, nth) => ({ kind: session === "a" && nth === 1 ? "yield" : "idle" }));
      const runner = await queues.work(stage.handler, { concurrency: 1 });
      await stage.ended(4);
      assert.equal(stage.order, ["a", "b", "c", "a"]);
      await runner.close(1_000);
    }),
  );

  test(
    "a closing worker takes nothing new, aborts with `draining`, and what it hands over is the next one's first",
    within(async ({ queues }) => {
      const stage = new Stage(async ({ signal }) => {
        await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
        return { kind: "handover" };
      });
      await queues.wake("a");
      const runner = await queues.work(stage.handler, { concurrency: 1 });
      await stage.began(1);
      await queues.wake("b");
      await runner.close(20);
      assert.is(stage.stays[0]?.signal.reason.code, "draining");
      assert.equal(stage.order, ["a"]);
      const next = new Stage();
      const other = await queues.work(next.handler, { concurrency: 1 });
      await next.ended(2);
      assert.equal(next.order, ["a", "b"]);
      assert.equal(
        next.stays.map(({ fresh, stall }) => [fresh, stall.count]),
        [
          [false, 0],
          [true, 0],
        ],
      );
      await other.close(1_000);
    }),
  );

  test(
    "a closing worker lets what runs finish",
    within(async ({ queues }) => {
      const inside = gate();
      const stage = new Stage(async () => {
        await inside.promise;
        return { kind: "idle" };
      });
      await queues.wake("s");
      const runner = await queues.work(stage.handler, { concurrency: 1 });
      await stage.began(1);
      const closed = runner.close(60_000);
      inside.open();
      await closed;
      assert.is(stage.stays[0]?.signal.aborted, false);
    }),
  );

  test(
    "as many sessions as the concurrency says run at the same time",
    within(async ({ queues }) => {
      const inside = gate();
      const stage = new Stage(async () => {
        await inside.promise;
        return { kind: "idle" };
      });
      for (let index = 0; index < 9; index += 1) await queues.wake(`s${index}`);
      const runner = await queues.work(stage.handler, { concurrency: 8 });
      await stage.began(8);
      assert.is(stage.stays.length, 8);
      inside.open();
      await stage.ended(9);
      await runner.close(1_000);
    }),
  );

  test(
    "an activation whose handler throws is tried again",
    within(async ({ queues }) => {
      const stage = new Stage((_lease, nth) => {
        if (nth === 1) throw new Error("broken by the test");
        return { kind: "idle" };
      });
      await queues.wake("s");
      const runner = await queues.work(stage.handler, { concurrency: 1 });
      await stage.ended(1);
      await eventually("the session is delayed", async () => {
        await queues.promote("s");
        return stage.stays.length > 1;
      });
      await runner.close(1_000);
    }),
  );

  test(
    "B9: odd ids stay distinct, as sessions and as turns, and each session is woken",
    within(async ({ queues }) => {
      for (const session of oddIds) {
        await queues.enqueue(turn(session, 1));
        for (const turnId of oddIds) await queues.enqueue(turn("s", 1, { turnId }));
      }
      for (const session of oddIds) assert.is((await queues.peek(session)).length, 1, session);
      const seen: string[] = [];
      for (let heads = await queues.peek("s"); heads.length > 0; ) {
        seen.push(...heads.map((head) => ("turnId" in head ? head.turnId : "refused")));
        heads = await queues.settle(
          "s",
          heads.map((head) => head.jobId),
        );
      }
      assert.equal(seen, oddIds);
      const stage = new Stage();
      const runner = await queues.work(stage.handler, { concurrency: 8 });
      await stage.ended(oddIds.length + 1);
      assert.equal([...stage.order].sort(), ["s", ...oddIds].sort());
      assert.is(new Set(oddIds.map((id) => queues.jobId(id, 0))).size, oddIds.length);
      await runner.close(1_000);
    }),
  );

  test(
    "repair adds the turns and the activation that are missing, and only those",
    within(async ({ queues, held }) => {
      const turns = [turn("s", 1), turn("s", 2), turn("s", 3)];
      await queues.enqueue(turns[0] as (typeof turns)[0]);
      assert.equal(await queues.repair("s", turns), { turns: 2, activations: 0 });
      assert.equal(await queues.repair("s", turns), { turns: 0, activations: 0 });
      assert.is((await queues.peek("s")).length, 3);
      assert.equal(await queues.repair("lost", [turn("lost", 1)]), { turns: 1, activations: 1 });
      assert.equal(await queues.repair("owed", []), { turns: 0, activations: 1 });
      assert.is(await held("none"), 0);
      const stage = new Stage();
      const runner = await queues.work(stage.handler, { concurrency: 1 });
      await stage.ended(3);
      assert.equal([...stage.order].sort(), ["lost", "owed", "s"]);
      await runner.close(1_000);
    }),
  );

  test(
    "another client's turn has no number; what cannot be understood says why and is removed by its job id",
    within(async ({ queues, inject, held }) => {
      const payload = { schema_version: 1, turn_id: "m1", bot: "ada", input: "hello", user: { id: "U1" } };
      await inject("s", queues.jobId("m1", 0), payload);
      await inject("s", "no-bot", { ...payload, bot: undefined });
      assert.equal(await queues.peek("s"), [
        { jobId: queues.jobId("m1", 0), turnId: "m1", generation: 0, bot: "ada", input: "hello", user: { id: "U1" } },
        {
          jobId: "no-bot",
          refused: "bot: Invalid input: expected string, received undefined",
          raw: JSON.stringify({ ...payload, bot: undefined }),
        },
      ]);
      assert.equal(await queues.settle("s", ["no-bot", queues.jobId("m1", 0)]), []);
      assert.is(await held("s"), 0);
    }),
  );

  test(
    "I9: an inbox keeps the last item of each id, wakes nobody, and leaves nothing",
    within(async ({ queues, held }) => {
      await queues.inbox.publish("s", { id: "notice", text: "old" });
      await queues.inbox.publish("s", { id: "note-1", text: "a note" });
      await queues.inbox.publish("s", { id: "notice", text: "new\n日本" });
      const items = await queues.inbox.list("s");
      assert.equal(items, [
        { id: "note-1", text: "a note" },
        { id: "notice", text: "new\n日本" },
      ]);
      const stage = new Stage();
      const runner = await queues.work(stage.handler, { concurrency: 1 });
      await queues.wake("last");
      await stage.ended(1);
      assert.equal(stage.order, ["last"]);
      await queues.inbox.remove("s", ["notice", "unknown"]);
      assert.equal(await queues.inbox.list("s"), [{ id: "note-1", text: "a note" }]);
      await queues.inbox.remove("s", ["note-1"]);
      assert.is(await held("s"), 0);
      await runner.close(1_000);
    }),
  );

  test(
    "a letter is kept once, per session, turn and generation, until it is removed; a refused job under its own id",
    within(async ({ queues }) => {
      const letter = { session: "s", turnId: "t", generation: 0, payload: { input: "x" } };
      await queues.letters.put(letter);
      await queues.letters.put({ ...letter, payload: { input: "again" } });
      await queues.letters.put({ ...letter, generation: 1 });
      await queues.letters.put({ ...letter, session: "s~t" });
      await queues.letters.putRefused("s", { jobId: "7", refused: "job id: automatic", raw: "{}" });
      assert.is((await queues.letters.list(100)).length, 4);
      assert.is((await queues.letters.list(2)).length, 2);
      await queues.letters.remove("s", "t", 0);
      await queues.letters.remove("s", "t", 0);
      const left = (await queues.letters.list(100)) as { session: string; generation?: number; payload?: unknown }[];
      assert.is(left.length, 3);
      assert.not.ok(left.some((one) => one.session === "s" && one.generation === 0));
      assert.ok(left.some((one) => one.session === "s" && one.generation === 1 && JSON.stringify(one.payload) === '{"input":"x"}'));
    }),
  );

  test(
    "asking for a look while one waits is one look, while one runs one more; a bot of others is left alone",
    within(async ({ queues }) => {
      const looks: string[] = [];
      const began = gate();
      const inside = gate();
      const third = gate();
      await queues.observations.request("ada", "first");
      await queues.observations.request("ada", "dropped");
      await queues.observations.request("foreign", "not ours");
      const working = await queues.observations.work(["ada", "bob"], async (bot, reason) => {
        looks.push(`${bot} ${reason}`);
        began.open();
        if (looks.length === 1) await inside.promise;
        if (bot === "bob") third.open();
        if (looks.length === 2) throw new Error("a look that fails");
      });
      await began.promise;
      await queues.observations.request("ada", "second");
      inside.open();
      await eventually("the second look", () => looks.length === 2);
      await queues.observations.request("bob", "third");
      await third.promise;
      assert.equal(looks, ["ada first", "ada second", "bob third"]);
      await working.close();
    }),
  );

  test(
    "events reach who subscribed to their session, signals everybody; after leaving nothing comes",
    within(async ({ queues, held }) => {
      const event: TurnEvent = { session: "s", seq: 3, type: "turn.done", turnId: "t", generation: 0, data: { text: "日本" } };
      const heard: TurnEvent[] = [];
      const got = gate();
      const leave = await queues.events.subscribe(
        "s",
        (one) => {
          heard.push(one);
          got.open();
        },
        () => undefined,
      );
      queues.events.publish({ ...event, session: "other" });
      queues.events.publish(event);
      await got.promise;
      assert.equal(heard, [event]);
      await leave();
      const signals: string[] = [];
      const signalled = gate();
      const quit = await queues.events.onSignal((session) => {
        signals.push(session);
        if (session === "last") signalled.open();
      });
      queues.events.publish(event);
      queues.events.signal("a:b");
      queues.events.signal("last");
      await signalled.promise;
      assert.equal(signals, ["a:b", "last"]);
      assert.is(heard.length, 1);
      await quit();
      assert.is(await held("s"), 0);
    }),
  );

  test(
    "shards, time and connection are told",
    within(async ({ queues }) => {
      for (const id of oddIds)
        assert.ok(Number.isInteger(queues.shardOf(id)) && queues.shardOf(id) >= 0 && queues.shardOf(id) < queues.shards);
      assert.ok(Math.abs(queues.now() - Date.now()) < 5_000);
      assert.is(queues.connected(), true);
    }),
  );

  test.run();
}
