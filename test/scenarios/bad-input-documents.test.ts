/** Documents edited by hand: the turn is dead with an error that says which document and field, nothing is sent, all else goes on. */
import { hashOf } from "../../src/domain/entry.ts";
import { sha256 } from "../../src/domain/prefix.ts";
import type { Entry } from "../../src/domain/records.ts";
import { memoryRepository } from "../../src/testing/memory-repository.ts";
import { firstBreak, inWorld, until, type World } from "../support/scenario.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("documents edited by hand");

/** Two turns, an edit, a fresh worker, two more turns: both dead, nothing sent, each counted and said. */
async function afterEdit(world: World, edit: (world: World) => void, other: "done" | "dead" = "done"): Promise<string[]> {
  const bot = () => world.bot({ memory: memoryRepository({ "PERSONA.md": "You are Ada.\n" }) });
  await world.worker([bot()]);
  await world.say("s", "one");
  await world.say("s", "two");
  edit(world);
  const worker = await world.restart([bot()]);
  const causes: string[] = [];
  for (const input of ["three", "four"]) {
    const { outcome, cause } = await world.say("s", input);
    assert.is(outcome, "dead");
    assert.is(world.logged(cause?.code ?? "").at(-1)?.level, "error", "an alarm");
    assert.is(worker.counts.get(cause?.code ?? ""), causes.length + 1, "which is counted");
    causes.push(`${cause?.code}: ${cause?.message}`);
  }
  assert.is(world.requests.length, 2, "not one other byte was sent");
  assert.is((await world.say("other", "hello")).outcome, other, "other sessions go on, unless they would begin over the same broken text");
  return causes;
}

function rewritten(entry: Entry): Entry {
  return { ...entry, rendered: entry.rendered.map((text) => text.replace("one", "ONE")) };
}

test(
  "a transcript edited by hand: the turn is dead, the error names the entry, and the session takes its outcome",
  inWorld(async (world) => {
    const causes = await afterEdit(world, () => world.editEntry("s", 1, rewritten));
    for (const cause of causes) assert.match(cause, /^document_invalid: transcript of session "s", seq 1: .*\(hash\)/);
  }),
);

test(
  "a transcript edited by hand with its hashes made to fit is drift all the same: the checkpoint says what was sent",
  inWorld(async (world) => {
    const fitting = (entry: Entry): Entry => ({ ...rewritten(entry), hash: hashOf(rewritten(entry)) });
    const causes = await afterEdit(world, () => {
      world.editEntry("s", 1, fitting);
      const first = world.entries("s")[0] as Entry;
      const relinked = (entry: Entry): Entry => ({ ...entry, previousHash: fitting(first).hash });
      world.editEntry("s", 2, (entry) => ({ ...relinked(entry), hash: hashOf(relinked(entry)) }));
    });
    for (const cause of causes)
      assert.match(cause, /^prefix_drift: transcript of session "s", seq 1: the recorded messages are not those that were sent/);
  }),
);

test(
  "a persona_snapshot edited by hand: the error names document and field",
  inWorld(async (world) => {
    const causes = await afterEdit(world, () => world.editOwner("s", { personaSnapshot: "You are Eve.\n" }));
    for (const cause of causes)
      assert.match(cause, /^document_invalid: session_ownership of session "s": persona_snapshot is not the one that was taken/);
  }),
);

for (const [how, text] of [
  ["edited", '"messages":['],
  ["removed", undefined],
] as const) {
  test(
    `prefix_parts ${how} by hand: the error names the hash and the field`,
    inWorld(async (world) => {
      const causes = await afterEdit(
        world,
        () => world.editPart(world.owner("s")?.prefixSha256 ?? "", text),
        text === undefined ? "done" : "dead",
      );
      const sha = world.owner("s")?.prefixSha256;
      for (const cause of causes)
        assert.match(
          cause,
          new RegExp(
            `^document_invalid: prefix_parts ${sha} of session "s" \\(prefix_sha256\\) ${text === undefined ? "is missing" : "was changed"}`,
          ),
        );
      assert.is.not(sha256(text ?? ""), sha);
    }),
  );
}

test(
  "a renderer that changes the outgoing bytes is caught before the call: PrefixDriftError says which part and byte",
  inWorld(async (world) => {
    await world.worker([world.bot()]);
    await world.say("s", "one");
    const model = world.model();
    const renderBody: typeof model.dialect.renderBody = (prefix, messages, options) =>
      model.dialect.renderBody(prefix.replace("briefly", "at length"), messages, options);
    const worker = await world.restart([world.bot({ model: { ...model, dialect: { ...model.dialect, renderBody } } })]);
    const { outcome, cause } = await world.say("s", "two");
    assert.equal([outcome, cause?.code], ["dead", "prefix_drift"]);
    assert.match(cause?.message ?? "", /the outgoing system differ from what was recorded, first at byte \d+ .*"at length/);
    assert.equal([world.requests.length, worker.counts.get("prefix_drift"), world.logged("prefix_drift").length], [1, 1, 1]);
    await world.restart([world.bot()]);
    assert.is((await world.say("s", "three")).outcome, "done", "with the right renderer the session goes on");
    assert.is(firstBreak(world.bodies("s")), null);
    await until("all is said", () => world.queues.activations.pending.size === 0);
  }),
);

test.run();
