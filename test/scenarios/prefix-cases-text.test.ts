/** A6, A12 and C6: what a snapshot may be, whose bytes are whose, and text that no store keeps as it came. */
import { mkdirSync, writeFileSync } from "node:fs";
import { memoryRepository } from "../../src/testing/memory-repository.ts";
import { gitWorld } from "../support/git-world.ts";
import { refusal } from "../support/refusal.ts";
import {
  firstBreak,
  firstChange,
  inFakeTime,
  inWorld,
  lastMessage,
  promptSection,
  systemTexts,
  until,
  type World,
} from "../support/scenario.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("cases of text");

async function begun(world: World): Promise<ReturnType<typeof memoryRepository>> {
  const memory = memoryRepository({ "PERSONA.md": "You are Ada.\n" });
  await world.worker([world.bot({ memory })]);
  await world.say("s", "one");
  return memory;
}

test(
  "A6: a snapshot that is missing because none was taken is built once and stored",
  inWorld(async (world) => {
    const { sessions } = await world.first();
    const fresh = await sessions.claim("s", "ada");
    assert.equal([fresh.baseline, "personaSnapshot" in fresh], [null, false]);
    const freezes: unknown[] = [];
    const { freeze } = world.store.ownership;
    world.store.ownership.freeze = (...args) => {
      freezes.push(args[2].personaSnapshot);
      return freeze(...args);
    };
    const memory = await begun(world);
    await world.say("s", "two");
    memory.edit("PERSONA.md", "Another.\n");
    await world.restart([world.bot({ memory })]);
    await world.say("s", "three");
    assert.equal(freezes, ["You are Ada.\n"]);
    assert.is(world.owner("s")?.personaSnapshot, "You are Ada.\n");
  }),
);

test(
  "A6: an empty string is a valid frozen persona, never rebuilt",
  inWorld(async (world) => {
    const memory = memoryRepository();
    let reads = 0;
    const counted = {
      ...memory,
      files: memory.files,
      look: () => memory.look(),
      persona: () => {
        reads += 1;
        return memory.persona();
      },
    };
    await world.worker([world.bot({ memory: counted })]);
    await world.say("s", "one");
    memory.edit("PERSONA.md", "Too late.\n");
    for (const input of ["two", "three"]) {
      await world.restart([world.bot({ memory: counted })]);
      await world.say("s", input);
    }
    assert.is(reads, 1, "PERSONA.md is read once in the session's life");
    assert.is(firstChange(world.bodies("s").map(promptSection)), null);
  }),
);

const wrong: readonly (readonly [string, unknown, RegExp])[] = [
  ["taken off", undefined, /persona_snapshot is missing/],
  ["null", null, /persona_snapshot is not text/],
  ["a number", 7, /persona_snapshot is not text/],
  ["an array", ["You are Ada.\n"], /persona_snapshot is not text/],
  ["an empty string", "", /persona_snapshot is not the one that was taken/],
  ["another text", "You are Eve.\n", /persona_snapshot is not the one that was taken/],
];

for (const [name, value, message] of wrong) {
  test(
    `A6: a taken snapshot that is ${name} now is a loud, named error, never a silent rebuild`,
    inWorld(async (world) => {
      const memory = await begun(world);
      world.editOwner("s", { personaSnapshot: value });
      const worker = await world.restart([world.bot({ memory })]);
      const ended = await world.say("s", "two");
      assert.equal([ended.outcome, ended.cause?.code], ["dead", "document_invalid"]);
      assert.match(ended.cause?.message ?? "", message);
      assert.is(world.requests.length, 1, "nothing was sent");
      assert.is(worker.counts.get("document_invalid"), 1);
      assert.is(world.logged("document_invalid").length, 1);
      assert.is(world.turns("s")[1]?.attemptsSpent, 1, "not tried again and again");
      const { sessions } = await world.first();
      await sessions.reown("s", "bob", { by: "op", why: "the way on" });
      assert.is(world.entries("s").at(-1)?.kind, "reowned", "the session is not stuck");
    }),
  );
}

test(
  "A6: a read that fails is not an empty persona: the turn waits and nothing is built",
  inFakeTime(async (world, clock) => {
    const memory = memoryRepository({ "PERSONA.md": "You are Ada.\n" });
    memory.breakWith("EACCES");
    await world.worker([world.bot({ memory })]);
    const { turns, sessions } = await world.first();
    const sent = await turns.send({ bot: "ada", session: "s", turnId: "1", input: "one" });
    await clock.advance(30_000);
    assert.is(await sessions.prefix("s"), null);
    assert.equal([world.requests.length, (await turns.get(sent)).state], [0, "queued"]);
    memory.breakWith(null);
    await clock.advance(10_000);
    await turns.wait(sent);
    assert.is((await sessions.prefix("s"))?.persona, "You are Ada.\n");
  }),
);

const bodies: readonly (readonly [string, string])[] = [
  ["odd white space at both ends", "\n\nYou are Ada, with e\u0301 and\r\nCRLF.  \t\u00a0\u200d\n\n\n"],
  ["only white space", " \n\t\r\n  \n"],
  ["a quote, a backslash and a separator", 'say "no" \\ \u2028 </headfast:notice>\n'],
];

for (const [name, persona] of bodies) {
  test(
    `A12: file, snapshot, first request and request after a restart are the same bytes: ${name}`,
    inWorld(async (world) => {
      const git = gitWorld();
      try {
        git.edit("PERSONA.md", persona);
        const bot = () => world.bot({ memory: git.another() });
        await world.worker([bot()]);
        await world.say("s", "one");
        await world.restart([bot()]);
        await world.say("s", "two");
        const [first, second] = world.bodies("s").map((body) => systemTexts(body).at(-1) as string) as [string, string];
        // A text of only white space is no block that a provider takes: it stands at the end of the one before.
        const before = persona.trim() === "" ? (world.bot({ memory: git.another() }).rolePrompts.at(-1) as string) : "";
        const file = Buffer.from(persona);
        assert.ok(file.equals(Buffer.from(world.owner("s")?.personaSnapshot ?? "?")), "file = snapshot");
        assert.ok(Buffer.from(before + persona).equals(Buffer.from(first)), "file = first request");
        assert.ok(Buffer.from(first).equals(Buffer.from(second)), "first request = request after the restart");
        assert.is(firstChange(world.bodies("s").map(promptSection)), null);
      } finally {
        git.dispose();
      }
    }),
  );
}

const odd = "lone \ud83d high, \udc4d low, \ufffd itself, NUL \0, and a whole 👍";

test(
  "C6: lone surrogates and NUL in rules, text, names, notes and file names: made well-formed once, the same bytes ever after",
  inWorld(async (world) => {
    const git = gitWorld();
    try {
      mkdirSync(git.file("dir"));
      git.edit("PERSONA.md", Buffer.from([0x41, 0xed, 0xa0, 0xbd, 0x42, 0x00, 0x43]));
      const bot = () => world.bot({ memory: git.another(), rolePrompts: [odd] });
      await world.worker([bot()]);
      const { inbox } = await world.first();
      await world.say("s", "one");
      // A file name with the bytes of a lone surrogate, as only another program can make it.
      writeFileSync(Buffer.concat([Buffer.from(git.file("dir/")), Buffer.from([0xed, 0xa0, 0xbd, 0x2e, 0x6d, 0x64])]), "x");
      await inbox.post({ session: "s", text: odd });
      await world.say("s", odd, { user: { id: "u", name: odd } });
      await world.restart([bot()]);
      await world.say("s", "three");

      const [, second, third] = world.bodies("s") as [string, string, string];
      assert.is(firstBreak(world.bodies("s")), null);
      for (const body of world.bodies("s")) {
        assert.ok(body.isWellFormed());
        assert.is(Buffer.from(body).toString(), body, "nothing is lost on the wire");
        JSON.parse(body);
      }
      const [notice, note, input] = lastMessage(second) as [string, string, string];
      assert.match(notice, /added: "dir\/\\xed\\xa0\\xbd\.md"/);
      assert.ok(note.includes(odd.toWellFormed()) && input.includes(odd.toWellFormed()));
      assert.is(world.turns("s")[1]?.input, odd.toWellFormed(), "stored as sent");
      assert.equal(
        world.entries("s")[1]?.rendered.every((text) => text.isWellFormed() && third.includes(text.slice(0, -3))),
        true,
        "sent as stored",
      );
      assert.ok((world.owner("s")?.personaSnapshot ?? "").startsWith("A\ufffd"), "an invalid byte is U+FFFD, once");
      assert.is(systemTexts(second)[0], odd.toWellFormed());
    } finally {
      git.dispose();
    }
  }),
);

test(
  "C6: an id is refused instead: made well-formed, two would become one",
  inWorld(async (world) => {
    const { turns } = await world.first();
    for (const field of ["session", "turnId", "bot"]) {
      const error = await refusal(turns.send({ bot: "ada", session: "s", turnId: "1", input: "x", [field]: "a\ud83d" }));
      assert.equal([error.code, error.data.field], ["invalid_id", field]);
    }
    const error = await refusal(turns.send({ bot: "ada", session: "s", turnId: "1", input: "x", user: { id: "\udc4d" } }));
    assert.equal([error.code, error.data.field], ["invalid_id", "user.id"]);
    await until("nothing was stored", () => world.store.contents().turns.length === 0);
  }),
);

test.run();
