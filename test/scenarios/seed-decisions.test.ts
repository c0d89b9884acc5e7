/** The six decisions of "the system prompt prefix is append-only", each by name. */
import { z } from "zod";
import type { Script } from "../../src/models/script.ts";
import { memoryRepository } from "../../src/testing/memory-repository.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { gitWorld } from "../support/git-world.ts";
import { firstBreak, firstChange, inWorld, lastMessage, promptSection, systemTexts, type World } from "../support/scenario.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("the seed's decisions");

const sentence = "Your Memory Repository is at /memory.";

/** Writes `own.md` in a turn that asks for it; answers plainly otherwise. */
const writer: Script = ({ step, lastUserText }) =>
  step === 1 && lastUserText.includes("write")
    ? { tools: [{ name: "write", args: { path: "own.md", content: lastUserText } }] }
    : `re: ${lastUserText}`;

function sections(world: World, ...sessions: string[]): Buffer[] {
  return sessions.flatMap((session) => world.bodies(session).map(promptSection));
}

function last(world: World, session: string): string[] {
  return lastMessage(world.bodies(session).at(-1) as string);
}

test(
  "decision 1: no derived state in the system prompt: it is role prompts and persona, whoever asks, whenever, whatever the repository holds",
  inWorld(async (world) => {
    const memory = memoryRepository({ "PERSONA.md": "You are Ada.\n" });
    const bot = world.bot({ memory, rolePrompts: ["Role text.", "Rule text."] });
    await world.worker([bot]);
    await world.say("first", "hello", { user: { id: "u-1", name: "Grace" } });
    for (let n = 0; n < 40; n += 1) memory.edit(`notes/${n}.md`, `note ${n}`);
    memory.commit("forty notes");
    memory.switchTo("another-branch");
    await world.restart([world.bot({ memory, rolePrompts: ["Role text.", "Rule text."] })]);
    await world.say("second", "good day", { user: { id: "u-2", name: "Alan" } });

    const [role, rule, memoryPrompt, persona, ...rest] = systemTexts(world.bodies("first")[0] as string);
    assert.equal([role, rule, persona, rest], ["Role text.", "Rule text.", "You are Ada.\n", []]);
    assert.ok(memoryPrompt?.endsWith(sentence), "the last sentence of ours names the virtual root");
    assert.is(firstChange(sections(world, "first", "second")), null);
  }),
);

test(
  "decision 2: append, never rewrite: each request continues the one before it byte for byte",
  inWorld(async (world) => {
    const memory = memoryRepository({ "PERSONA.md": "You are Ada.\n" });
    const bot = () => world.bot({ memory, model: world.model(writer) });
    await world.worker([bot()]);
    await world.say("s", "hello");
    memory.edit("a.md", "by a person");
    await world.say("s", "write this down");
    await (await world.first()).inbox.post({ session: "s", text: "the office closes at six" });
    await world.restart([bot()]);
    await world.say("s", "and now?");

    assert.is(world.bodies("s").length, 4, "three turns, one of them with a tool");
    assert.is(firstBreak(world.bodies("s")), null);
    assert.equal(last(world, "s").length, 2, "the note and the input, at the bottom");
  }),
);

test(
  "decision 3: no Memory Tree: the agent is told where its repository is and explores it with file tools",
  inWorld(async (world) => {
    const memory = memoryRepository({ "PERSONA.md": "You are Ada.\n", "garden/tomatoes.md": "Water them daily." });
    const explore: Script = ({ step }) =>
      step === 1
        ? {
            tools: [
              { name: "glob", args: { pattern: "**/*.md" } },
              { name: "grep", args: { pattern: "Water" } },
            ],
          }
        : step === 2
          ? { tools: [{ name: "read", args: { path: "/memory/garden/tomatoes.md" } }] }
          : "daily";
    await world.worker([world.bot({ memory, model: world.model(explore) })]);
    const { text } = await world.say("s", "how often do I water?");

    const [first, second, third] = world.bodies("s") as [string, string, string];
    assert.is(text, "daily");
    assert.not.match(first, /tomatoes|garden|Water/);
    assert.ok(systemTexts(first).some((part) => part.endsWith(sentence)));
    assert.match(lastMessage(second).join("\n"), /garden\/tomatoes\.md/);
    assert.match(lastMessage(third).join("\n"), /Water them daily\./);
  }),
);

test(
  "decision 4: no generated MEMORY.md and no pins: front matter means nothing, no body is injected, no file appears",
  inWorld(async (world) => {
    const git = gitWorld();
    try {
      git.edit("PERSONA.md", "---\npin: true\npins: [pinned.md]\n---\nYou are Ada.\n");
      git.edit("pinned.md", "---\npin: true\n---\nSECRET-OF-THE-PINNED-BODY\n");
      git.commit("with pins");
      const bot = () => world.bot({ memory: git.another() });
      await world.worker([bot()]);
      await world.say("with", "hello");
      git.edit("MEMORY.md", "SECRET-OF-THE-AGENT'S-OWN-INDEX");
      git.edit("PERSONA.md", "You are Ada.\n");
      await world.restart([bot()]);
      await world.say("with", "again");
      await world.say("without", "hello");

      assert.is(firstChange(sections(world, "with", "without")), null, "pin metadata changes no byte");
      assert.not.match(world.requests.map(({ body }) => body).join("\n"), /SECRET|pin:|pins:/);
      git.remove("MEMORY.md");
      assert.is(git.git("status", "--porcelain"), " M PERSONA.md\n", "nothing but the person's own edit: no index was written");
    } finally {
      git.dispose();
    }
  }),
);

for (const [what, files] of [
  ["empty", { "PERSONA.md": "" }],
  ["of front matter only", { "PERSONA.md": "---\na: 1\n---\n" }],
  ["absent", {}],
] as const) {
  test(
    `decision 5: a persona that is ${what} is a real snapshot, which a later text does not fill`,
    inWorld(async (world) => {
      const memory = memoryRepository(files);
      await world.worker([world.bot({ memory })]);
      await world.say("s", "hello");
      assert.is(world.owner("s")?.personaSnapshot, "");
      assert.type(world.owner("s")?.personaSnapshotAt, "string");
      memory.edit("PERSONA.md", "You are Ada.\n");
      await world.restart([world.bot({ memory })]);
      await world.say("s", "and now?");
      await world.say("new", "hello");
      assert.is(firstChange(sections(world, "s")), null);
      assert.is(world.owner("s")?.personaSnapshot, "");
      assert.is(systemTexts(world.bodies("new")[0] as string).at(-1), "You are Ada.\n", "the control: a new session has it");
    }),
  );
}

test(
  "decision 5: a repository that is not ready records nothing; its repair is the first baseline, and the last",
  inWorld(async (world) => {
    const memory = memoryRepository({ "PERSONA.md": "You are Ada.\n" });
    memory.unready("the folder is missing");
    await world.worker([world.bot({ memory })]);
    await world.say("s", "before");
    assert.is(world.owner("s")?.personaSnapshot, undefined);
    assert.is(world.owner("s")?.personaSnapshotAt, undefined);
    assert.not.match(world.bodies("s")[0] as string, /You are Ada/);
    memory.unready(null);
    await world.say("s", "repaired");
    memory.edit("PERSONA.md", "You are somebody else.\n");
    await world.restart([world.bot({ memory })]);
    await world.say("s", "edited");
    const [, repaired, edited] = sections(world, "s") as [Buffer, Buffer, Buffer];
    assert.is(world.owner("s")?.personaSnapshot, "You are Ada.\n");
    assert.match(repaired.toString(), /You are Ada/);
    assert.is(firstChange([repaired, edited]), null);
    assert.match(world.logs.map(({ message }) => message).join("\n"), /the persona arrived/, "the later arrival is logged");
  }),
);

test(
  "decision 5: re-owning a session clears its snapshot; the next assembly takes the new bot's",
  inWorld(async (world) => {
    const ada = world.bot({ memory: memoryRepository({ "PERSONA.md": "You are Ada.\n" }) });
    const bob = world.bot({ name: "bob", memory: memoryRepository({ "PERSONA.md": "You are Bob.\n" }) });
    await world.worker([ada, bob]);
    await world.say("s", "hello");
    const { sessions } = await world.first();
    const standing = await sessions.reown("s", "bob", { by: "an operator" });
    assert.equal(
      [standing.bot, standing.personaSnapshot, standing.personaSnapshotAt, standing.baseline],
      ["bob", undefined, undefined, null],
    );
    await world.say("s", "who are you?", { bot: "bob" });
    assert.is(systemTexts(world.bodies("s").at(-1) as string).at(-1), "You are Bob.\n");
    assert.is(world.owner("s")?.personaSnapshot, "You are Bob.\n");
  }),
);

test(
  "decision 6: memory changes use the inbox: one notice at the bottom of the next turn, none for the bot's own write, after a restart too",
  inWorld(async (world) => {
    const memory = memoryRepository({ "PERSONA.md": "You are Ada.\n" });
    const bot = () => world.bot({ memory, model: world.model(writer) });
    await world.worker([bot()]);
    await world.say("s", "hello");
    memory.edit("a.md", "by a person");
    await world.say("s", "one");
    assert.is(last(world, "s").length, 2);
    assert.match(last(world, "s")[0] as string, /^<headfast:notice>\n.*\nadded: "a\.md"\n<\/headfast:notice>$/);
    await world.say("s", "please write");
    assert.is(Buffer.from(await memory.files.read("own.md")).toString(), "please write", "the bot did write");
    await world.say("s", "two");
    assert.equal(last(world, "s"), ["two"], "what the bot wrote is in its tool result already");

    await world.restart([]);
    memory.edit("b.md", "while no worker ran");
    memory.remove("a.md");
    await world.restart([bot()]);
    await world.say("s", "three");
    assert.match(last(world, "s")[0] as string, /deleted: "a\.md"\nadded: "b\.md"/);
    assert.not.match(last(world, "s")[0] as string, /own\.md/);
    await world.say("s", "four");
    assert.equal(last(world, "s"), ["four"], "told once");
    assert.is(firstBreak(world.bodies("s")), null);
    assert.is(firstChange(sections(world, "s")), null);
  }),
);

test(
  "decision 6: a tool of the bot's own that writes through its memory gives no notice either",
  inWorld(async (world) => {
    const jot = defineTool({
      name: "jot",
      description: "Jots down a line.",
      input: z.object({ line: z.string() }),
      run: async ({ line }, { memory }) => {
        await memory?.write("jotted.md", Buffer.from(line));
        return "jotted";
      },
    });
    const memory = memoryRepository();
    const script: Script = ({ step, turnId }) => (turnId === "t1" && step === 1 ? { tools: [{ name: "jot", args: { line: "x" } }] } : "ok");
    await world.worker([world.bot({ memory, tools: [jot], model: world.model(script) })]);
    await world.say("s", "jot it");
    await world.say("s", "next");
    assert.equal(last(world, "s"), ["next"]);
    memory.edit("jotted.md", "changed by a person");
    await world.say("s", "and now");
    assert.match(last(world, "s")[0] as string, /modified: "jotted\.md"/, "the control: a person's edit of the same file is told");
  }),
);

test.run();
