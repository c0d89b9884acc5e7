/** `headfast chat` as a person and a pipe use it, in memory and durable, with the real command. */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { botFolder, runCli, startCli } from "../support/cli.ts";
import { git, temporaryFolder } from "../support/git.ts";
import { dropDatabase } from "../support/mongo.ts";
import { mongoUrl, redisUrl, uniqueName } from "../support/services.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("cli chat", { timeoutMs: 60_000 });
const bots = botFolder("cli-chat");
const namespace = uniqueName("chat").slice(0, 38);
const place = ["--redis", redisUrl(), "--mongo", mongoUrl(), "--namespace", namespace];

test.after(async () => {
  bots.remove();
  await dropDatabase(namespace);
});

test("over a pipe: a line is a turn, answers on stdout, the end of input is the end", async () => {
  const { code, stdout, stderr } = await runCli(["chat"], {
    cwd: bots.memory,
    input: "hello\n\nread notes/kitchen.md\n/help\n/nonsense\n//slash\n",
  });
  assert.is(code, 0, stderr);
  assert.match(stdout, /^You said: hello\n/);
  assert.match(stdout, "notes/kitchen.md says:\n# Notes");
  assert.match(stdout, /You said: \/slash\n$/);
  assert.is(stdout.match(/You said: hello/g)?.length, 1, "an answer that was streamed is not printed again");
  assert.match(stderr, /Memory Repository: (\S+) \(an example\)/);
  assert.match(stderr, "tool read");
  assert.match(stderr, "there is no /nonsense");
});

test("with --json one object, after the last answer", async () => {
  const { code, stdout, stderr } = await runCli(["chat", "--json", "--session", "-100123", "--memory", bots.memory], {
    input: "read notes.md\n/exit\nnot heard\n",
  });
  assert.is(code, 0, stderr);
  const said = JSON.parse(stdout) as { session: string; durable: boolean; turns: { outcome: string; tools: string[]; text: string }[] };
  assert.equal([said.session, said.durable, said.turns.length], ["-100123", false, 1]);
  assert.equal([said.turns[0]?.outcome, said.turns[0]?.tools], ["done", ["read"]]);
  assert.match(said.turns[0]?.text ?? "", "one");
  assert.is(stderr, "");
});

test("says once that PERSONA.md differs from the snapshot, and tells a notice as it is told", async () => {
  const folder = temporaryFolder("cli-chat-memory");
  try {
    writeFileSync(join(folder.path, "PERSONA.md"), "You are Bea.\n");
    git(folder.path, "init", "-q", "-b", "main");
    const chat = startCli(["chat", "--memory", folder.path]);
    chat.child.stdin.write("hello\n");
    await chat.until(/You said: hello/);
    writeFileSync(join(folder.path, "PERSONA.md"), "You are Cleo.\n");
    chat.child.stdin.write("who are you\n");
    await chat.until(/You are Bea\./);
    chat.child.stdin.end("again\n");
    const { code, stdout, stderr } = await chat.ended;
    assert.is(code, 0, stderr);
    assert.is(stderr.match(/this session keeps its persona of \d{4}-[^;]*; a new one has the new text/g)?.length, 1);
    assert.match(stderr, /notice: The Memory Repository changed[\s\S]*modified: "PERSONA\.md"/);
    assert.not.match(stdout, "Cleo");
  } finally {
    folder.remove();
  }
});

test("killed with SIGKILL in the middle of a turn, the same chat goes on with the same bytes", async () => {
  const chatArgs = ["chat", "--config", bots.config, "--bot", "ada", "--session", "tg:42", "--user", "7", ...place];
  const first = startCli(chatArgs);
  first.child.stdin.write("hello\n");
  await first.until(/answer: hello/);
  first.child.stdin.write("look and wait\n");
  await first.until(/hanging/);
  first.child.kill("SIGKILL");
  assert.is((await first.ended).signal, "SIGKILL");

  const before = await seen();
  assert.is(before.entries.length, 2, "the answer, and the step that asked for the tool");
  writeFileSync(bots.file("gate"), "");
  writeFileSync(join(bots.memory, "PERSONA.md"), "You are somebody else.\n");
  const second = await runCli(chatArgs, { input: "after\n" });
  assert.is(second.code, 0, second.stderr);
  assert.match(second.stderr, "still to be answered: look and wait");
  assert.is(second.stdout, "answer: look and wait\nanswer: after\n");

  const after = await seen();
  assert.is(after.prefix, before.prefix, "the prefix is the same, byte for byte");
  assert.match(after.prefix, "You are Ada.");
  assert.equal(after.entries.slice(0, 2), before.entries);
  assert.is(after.entries.length, 4);
  const verified = await runCli(["session", "verify", "tg:42", "--json", ...place]);
  assert.equal(JSON.parse(verified.stdout), { session: "tg:42", entries: 4, valid: true });
  rmSync(bots.file("gate"));
});

/** The frozen bytes and the hashes of the log. */
async function seen(): Promise<{ prefix: string; entries: string[] }> {
  const [prefix, transcript] = await Promise.all([
    runCli(["prefix", "show", "tg:42", ...place]),
    runCli(["session", "transcript", "tg:42", "--json", ...place]),
  ]);
  assert.equal([prefix.code, transcript.code], [0, 0], prefix.stderr + transcript.stdout);
  const { entries } = JSON.parse(transcript.stdout) as { entries: { hash: string }[] };
  return { prefix: prefix.stdout, entries: entries.map(({ hash }) => hash) };
}

test("another bot's session is refused, and a bot that is not there", async () => {
  const [rival, unknown, none] = await Promise.all([
    runCli(["chat", "--config", bots.config, "--bot", "strict", "--session", "tg:42", ...place]),
    runCli(["chat", "--config", bots.config, "--bot", "bob", ...place]),
    runCli(["chat", "--bot", "bob"], { cwd: bots.memory }),
  ]);
  assert.is(rival.code, 1);
  assert.match(rival.stderr, /^headfast: ownership_conflict: .*"ada"/m);
  assert.equal([unknown.code, none.code], [3, 3]);
  assert.match(unknown.stderr, "bot_not_found");
});

test.run();
