/** I7 and I9: what changed in the Memory Repository is told once, to whom it is news, and wakes nobody. */
import { limits } from "../../src/domain/limits.ts";
import { fail, type Script } from "../../src/models/script.ts";
import { type MemoryRepositoryFake, memoryRepository } from "../../src/testing/memory-repository.ts";
import { gitWorld } from "../support/git-world.ts";
import { gate, inFakeTime, inWorld, lastMessage, until, type World } from "../support/scenario.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("invariants of memory");

/** The notices in the last request of a session, without their tags. */
function notices(world: World, session: string): string[] {
  const texts = lastMessage(world.bodies(session).at(-1) as string);
  return texts.filter((text) => text.startsWith("<headfast:notice>")).map((text) => text.split("\n").slice(2, -1).join("\n"));
}

async function begun(world: World, memory: MemoryRepositoryFake, script?: Script): Promise<void> {
  await world.worker([world.bot({ memory, model: world.model(script) })]);
  await world.say("s", "hello");
}

test(
  "I7: the first look is a silent baseline; a change is told once; an unchanged look tells nothing",
  inWorld(async (world) => {
    const memory = memoryRepository({ "a.md": "a", "b.md": "b", "run.sh": "#!" });
    await begun(world, memory);
    assert.equal(notices(world, "s"), []);
    memory.edit("a.md", "A");
    memory.rename("b.md", "c.md");
    memory.chmod("run.sh", true);
    memory.switchTo("topic");
    await world.say("s", "one");
    assert.equal(notices(world, "s"), [
      ['branch: "main" -> "topic"', 'modified: "a.md"', 'renamed: "b.md" -> "c.md"', 'mode 100644 -> 100755: "run.sh"'].join("\n"),
    ]);
    memory.commit("the same branch and tree");
    await world.say("s", "two");
    assert.equal(notices(world, "s"), [], "a moved HEAD alone is no news");
  }),
);

test(
  "I7: made and reverted between two turns gives none",
  inWorld(async (world) => {
    const memory = memoryRepository({ "a.md": "a" });
    await begun(world, memory);
    memory.edit("a.md", "A");
    memory.edit("b.md", "b");
    await (await world.first()).observe("ada");
    await until("the pending notice is published", () => world.queues.inbox.items.size > 0);
    memory.edit("a.md", "a");
    memory.remove("b.md");
    await world.say("s", "one");
    assert.equal(notices(world, "s"), []);
    await until("the published notice is withdrawn", () => world.queues.inbox.items.size === 0);
  }),
);

test(
  "I7: at most one pending notice, whatever the number of observations, and it is the whole net change",
  inWorld(async (world) => {
    const memory = memoryRepository();
    await begun(world, memory);
    const host = await world.first();
    const { inbox } = host;
    for (let n = 0; n < 5; n += 1) {
      memory.edit(`${n}.md`, "x");
      await host.observe("ada");
      await until("told", async () => (await inbox.list("s")).some(({ text }) => text.includes(`"${n}.md"`)));
      await host.observe("ada", "again");
    }
    const items = await inbox.list("s");
    assert.is(items.length, 1);
    assert.equal(
      items[0]?.text.split("\n").slice(1),
      [0, 1, 2, 3, 4].map((n) => `added: "${n}.md"`),
    );
    assert.equal([...(world.queues.inbox.items.get("s")?.keys() ?? [])], ["notice"]);
  }),
);

test(
  "I7: a notice is bounded to 30 paths and 4,096 bytes, counts the rest, and holds no bodies",
  inWorld(async (world) => {
    const memory = memoryRepository();
    await begun(world, memory);
    for (let n = 0; n < 50; n += 1) memory.edit(`${"名".repeat(20)}${n}.md`, "BODY");
    await world.say("s", "one");
    const [few] = notices(world, "s") as [string];
    assert.is(few.split("\n").length, limits.noticePathsMax + 1);
    assert.match(few, /\nand 20 more paths$/);
    for (let n = 0; n < 50; n += 1) memory.edit(`${"長".repeat(120)}${n}.md`, "BODY");
    await world.say("s", "two");
    const raw = lastMessage(world.bodies("s").at(-1) as string)[0] as string;
    assert.ok(Buffer.byteLength(raw) <= limits.noticeBytesMax + "<headfast:notice>\n\n</headfast:notice>".length);
    const [lines] = notices(world, "s") as [string];
    assert.is(Number(/and (\d+) more paths$/.exec(lines)?.[1]) + lines.split("\n").length - 1, 50, "shown and left out are all");
    assert.not.match(world.bodies("s").join(""), /BODY|�/);
  }),
);

test(
  "I7: a notice stays pending until a step that holds it is recorded: a failed call tells nothing, the retry tells it whole",
  inFakeTime(async (world, clock) => {
    const memory = memoryRepository();
    await begun(world, memory, ({ call }) => (call === 2 ? fail("broken") : "ok"));
    memory.edit("early.md", "x");
    const said = world.say("s", "one");
    await until("the call failed", () => world.turns("s")[1]?.attemptsSpent === 1);
    memory.edit("late.md", "x");
    await clock.advance(5_000);
    await said;
    assert.equal(notices(world, "s"), ['added: "early.md"\nadded: "late.md"']);
    assert.equal(
      world.entries("s").map(({ notice }) => notice !== null),
      [false, true],
    );
  }),
);

test(
  "I7: what the session itself wrote gives it none, on real git too; another session of the bot, and a person's edit in the same turn, are told",
  inWorld(async (world) => {
    const git = gitWorld();
    try {
      git.edit(".gitattributes", "*.md text eol=lf\n");
      git.commit("begin");
      const asked = gate();
      const go = gate();
      const script: Script = async ({ step, lastUserText }) => {
        if (lastUserText !== "write" || step > 2) return "ok";
        if (step === 1)
          return {
            tools: [
              { name: "write", args: { path: "own.md", content: "mine\r\n" } },
              { name: "write", args: { path: "shared.md", content: "mine" } },
            ],
          };
        asked.open();
        await go.opened;
        return "written";
      };
      await world.worker([world.bot({ memory: git.another(), model: world.model(script) })]);
      await world.say("s", "hello");
      await world.say("other", "hello");
      const writing = world.say("s", "write");
      await asked.opened;
      git.edit("person.md", "while the turn runs");
      git.edit("shared.md", "overwritten by a person while the turn runs");
      go.open();
      await writing;
      await world.say("s", "next");
      assert.equal(notices(world, "s"), ['added: "person.md"\nadded: "shared.md"']);
      await world.say("other", "next");
      assert.equal(notices(world, "other"), ['added: "own.md"\nadded: "person.md"\nadded: "shared.md"']);
      await world.say("s", "once more");
      assert.equal(notices(world, "s"), []);
    } finally {
      git.dispose();
    }
  }),
);

test(
  "I7: a look that fails is told as such, and after the repair one notice holds the whole net change",
  inWorld(async (world) => {
    const memory = memoryRepository();
    await begun(world, memory);
    memory.breakWith("corrupt index");
    memory.edit("a.md", "x");
    await world.say("s", "one");
    assert.match(lastMessage(world.bodies("s").at(-1) as string)[0] as string, /could not be looked at/);
    memory.breakWith(null);
    memory.edit("b.md", "x");
    await world.say("s", "two");
    assert.equal(notices(world, "s"), ['added: "a.md"\nadded: "b.md"']);
  }),
);

test(
  "I9: observations and notes wake nobody: at start-up, when asked, and with a notice pending",
  inFakeTime(async (world, clock) => {
    const memory = memoryRepository();
    await begun(world, memory);
    await world.restart([]);
    const woken: string[] = [];
    const { wake } = world.queues;
    world.queues.wake = (session) => {
      woken.push(session);
      return wake.call(world.queues, session);
    };
    memory.edit("a.md", "x");
    await world.restart([world.bot({ memory })]);
    await until("the start-up look has published its notice", () => world.queues.inbox.items.has("s"));
    const host = await world.first();
    memory.edit("b.md", "x");
    await host.observe("ada", "a hook");
    await until("the second look too", () => world.queues.inbox.items.get("s")?.get("notice")?.text.includes("b.md") === true);
    await host.inbox.post({ session: "s", text: "a note" });
    await clock.advance(10 * limits.reconcileMs);
    assert.is(world.requests.length, 1, "no model was called");
    assert.is(world.entries("s").length, 1, "nothing was recorded");
    assert.equal([woken, world.queues.activations.pending.size], [[], 0], "nobody was woken");
    assert.equal([...(world.queues.inbox.items.get("s")?.keys() ?? [])].sort(), ["note-1", "notice"], "both wait");
    await world.say("s", "now");
    assert.is(lastMessage(world.bodies("s").at(-1) as string).length, 3, "the control: the next turn tells both");
    await until("what was told has left the inbox", () => world.queues.inbox.items.size === 0);
  }),
);

test.run();
