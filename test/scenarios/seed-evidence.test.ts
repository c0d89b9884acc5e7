/** The evidence that the product exists for: a person edits PERSONA.md, and no session that has begun sees another byte. */
import type { Bot } from "../../src/domain/ports.ts";
import { prefixOf } from "../../src/domain/prefix.ts";
import { gitWorld } from "../support/git-world.ts";
import { firstBreak, firstChange, inWorld, promptSection, systemTexts, type World } from "../support/scenario.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("the seed's evidence");

/** What a program does that reads PERSONA.md again for each request: the same parts, the same renderer. */
async function naiveBody(bot: Bot): Promise<string> {
  const persona = await bot.memory?.persona();
  const { dialect, name: model, maxTokens } = bot.model;
  const prefix = prefixOf(
    { tools: bot.tools, rolePrompts: bot.rolePrompts, persona: persona?.state === "ready" ? persona.body : null },
    dialect,
  );
  const message = dialect.renderMessage({ role: "user", blocks: [{ type: "input", text: "hello" }] });
  return dialect.renderBody(prefix.text, [message], { model, maxTokens, settled: 0 }).body;
}

function sections(world: World, session: string): Buffer[] {
  return world.bodies(session).map(promptSection);
}

test(
  "edits PERSONA.md mid-session and asserts that the prompt section's bytes do not change",
  inWorld(async (world) => {
    const git = gitWorld();
    try {
      git.edit("PERSONA.md", "---\nname: Ada\n---\nYou are Ada, who counts slowly.\n");
      git.commit("persona");
      const bot = (): Bot => world.bot({ memory: git.another() });
      const naive: Buffer[] = [];
      const request = async (input: string): Promise<void> => {
        await world.say("old", input);
        naive.push(promptSection(await naiveBody(bot())));
      };

      await world.worker([bot()]);
      await request("one");
      git.edit("PERSONA.md", "You are Ada, who counts FAST.\n");
      await request("two: edited, not committed");
      git.commit("faster");
      await request("three: committed");
      await world.restart([bot()]);
      await request("four: after a restart, resumed cold");
      git.edit("PERSONA.md", "");
      await world.restart([bot()]);
      await request("five: emptied before another restart");
      git.remove("PERSONA.md");
      await request("six: removed");

      const old = sections(world, "old");
      assert.is(old.length, 6);
      assert.is(firstChange(old), null, "the old session's prompt section never changes a byte");
      assert.is(firstBreak(world.bodies("old")), null, "nor does anything else that was said");
      assert.equal(systemTexts(world.bodies("old").at(-1) as string).at(-1), "You are Ada, who counts slowly.\n");

      // The control: the same comparison sees the edit wherever one can be seen.
      git.edit("PERSONA.md", "You are Ada, who counts FAST.\n");
      await world.say("new", "hello");
      const [fresh] = sections(world, "new") as [Buffer];
      assert.is(firstChange([old[0] as Buffer, fresh]), 1, "a new session has the new text");
      assert.equal(systemTexts(world.bodies("new")[0] as string).at(-1), "You are Ada, who counts FAST.\n");
      assert.ok(naive[0]?.equals(old[0] as Buffer), "the naive builder starts with the very same bytes");
      assert.is(firstChange(naive), 1, "and changes them with the first edit");
      assert.is(firstChange(naive.slice(1)), 3, "and again when the file was emptied");
    } finally {
      git.dispose();
    }
  }),
);

test("the comparison itself tells one byte of difference, and a rewritten message from an appended one", () => {
  const section = Buffer.from('{"system":"a"}');
  assert.is(firstChange([section, Buffer.from(section), Buffer.from('{"system":"b"}')]), 2);
  assert.is(firstChange([Buffer.from("é".normalize("NFC")), Buffer.from("é".normalize("NFD"))]), 1);
  const body = (...messages: string[]): string => `{"model":"m","max_tokens":1,"messages":[${messages.join(",")}]}`;
  assert.is(firstBreak([body('{"a":1}'), body('{"a":1}', '{"b":2}')]), null);
  assert.is(firstBreak([body('{"a":1}'), body('{"a":2}', '{"b":2}')]), 1);
  assert.is(firstBreak([body('{"a":1}'), body('{"a":1}')]), 1);
});

test.run();
