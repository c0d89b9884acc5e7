/** The operator's commands, as real processes on real services and a real worker: what they do, print and exit with. */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Headfast } from "../../src/main.ts";
import { botFolder, type Finished, type RunningCli, runCli, startCli } from "../support/cli.ts";
import { dropDatabase } from "../support/mongo.ts";
import { mongoUrl, redisUrl, uniqueName } from "../support/services.ts";
import { assert, suite } from "../support/suite.ts";

const test = suite("cli", { timeoutMs: 60_000 });
const bots = botFolder("cli");
const namespace = uniqueName("cli").slice(0, 38);
const env = { HEADFAST_REDIS_URL: redisUrl(), HEADFAST_MONGO_URL: mongoUrl(), HEADFAST_NAMESPACE: namespace };
let hf: Headfast;
let worker: RunningCli;

test.before(async () => {
  hf = await Headfast.connect({ redis: redisUrl(), mongo: mongoUrl(), namespace });
  worker = startCli(["worker", "--config", bots.config, "--concurrency", "4"], { env });
  await worker.until(/"msg":"ready"/);
});

test.after(async () => {
  worker.child.kill("SIGKILL");
  await worker.ended;
  await hf.close();
  bots.remove();
  await dropDatabase(namespace);
});

const cli = (...args: string[]): Promise<Finished> => runCli(args, { env });

/** Runs with `--json`: the exit code and what was printed. */
async function json(...args: string[]): Promise<{ code: number | null; said: never }> {
  const { code, stdout, stderr } = await cli(...args, "--json");
  assert.is(stderr, "", args.join(" "));
  assert.is(stdout.trimEnd().split("\n").length, 1, "one value on one line");
  return { code, said: JSON.parse(stdout) as never };
}

async function dead(session: string, bot: string, turnId: string): Promise<void> {
  const sent = await hf.turns.send({ bot, session, turnId, input: "fail", user: { id: "7", name: "Bo" } });
  assert.is((await hf.turns.wait(sent, { timeoutMs: 20_000 })).outcome, "dead");
}

test("exit codes: 2 for a wrong command line, 3 for what is not there, 1 for what fails", async () => {
  const [usage, unknown, list] = await Promise.all([
    cli("session", "shwo"),
    json("turn", "show", "nobody", "1"),
    json("session", "ls", "--bot", "none"),
  ]);
  assert.equal([usage.code, unknown.code, list.code], [2, 3, 3]);
  assert.is(usage.stderr.trimEnd().split("\n").length, 1);
  assert.match(usage.stderr, /^headfast: invalid_input: .*did you mean show\?/);
  assert.is((unknown.said as { error: { code: string } }).error.code, "session_not_found");
  assert.equal(list.said, []);
  const away = await runCli(["session", "ls"], {
    env: { HEADFAST_REDIS_URL: redisUrl(), HEADFAST_MONGO_URL: "mongodb://u:s3cret@127.0.0.1:9/?serverSelectionTimeoutMS=200" },
  });
  assert.is(away.code, 1);
  assert.match(away.stderr, /^headfast: store_unavailable: /m);
  assert.not.match(away.stdout + away.stderr, /s3cret|\n\s+at /);
});

test("what cannot be right is refused with exit code 2, before any service is asked", async () => {
  const waits = bots.file("waits.mjs");
  writeFileSync(waits, "export const bots = () => new Promise(() => undefined);\n");
  const calls: [string[], RegExp][] = [
    [["session", "ls", "--redis", "nonsense"], /--redis must be a URL/],
    [["session", "ls", "--namespace", "A B"], /--namespace "A B"/],
    [["session", "ls", "--limit", "0"], /--limit must be a whole number/],
    [["memory", "diff", "--bot", "ada", "--memory", bots.file("nowhere")], /no such folder/],
    [["chat", "--memory", bots.file("nowhere")], /no such folder/],
    [["worker", "--config", waits], /its bots never came/],
  ];
  for (const [args, message] of calls) {
    const { code, stdout, stderr } = await cli(...args);
    assert.equal([args.join(" "), code, stdout], [args.join(" "), 2, ""]);
    assert.match(stderr, message);
    assert.is(stderr.trimEnd().split("\n").length, 1);
  }
});

test("nothing that a host, a person or a bot said begins a line of ours or moves the cursor", async () => {
  const session = "evil\n#9 step\u001b[2J";
  const turnId = "1\r#8";
  const user = { id: "7", name: "Bo\n  bot: forged" };
  const input = "hello\n#7 step turn forged → done\u001b]0;x\u0007";
  const sent = await hf.turns.send({ bot: "ada", session, turnId, input, user, deliverTo: "C\n1" });
  await hf.turns.wait(sent, { timeoutMs: 20_000 });
  await hf.inbox.post({ session, text: "one\nnote-9: forged" });
  const outputs = await Promise.all([
    cli("session", "ls"),
    cli("session", "show", session),
    cli("session", "transcript", session),
    cli("turn", "show", session, turnId),
    cli("turn", "wait", session, turnId),
    cli("inbox", "ls", session),
    cli("session", "reown", session, "--to", "ada\u001b[2J", "--why", "two\nlines"),
    cli("doctor", "--session", session),
    cli("turn", "show", session, "none\u001b[2J"),
  ]);
  for (const { stdout, stderr } of outputs) assert.not.match(stdout + stderr, /[^\n\P{Cc}]/u);
  const [, , transcript, turn, , inbox] = outputs;
  assert.not.match(transcript?.stdout ?? "", /^(?:#[789]| {2}bot: forged)/mu);
  assert.not.match(turn?.stdout ?? "", /^#7/mu);
  assert.not.match(inbox?.stdout ?? "", /^note-9/mu);
  await hf.sessions.reown(session, "ada", { by: "test" });
});

test("sessions and turns: ls, show, wait, transcript, prefix", async () => {
  await hf.turns.send({ bot: "ada", session: "-100123", turnId: "007", input: "hello", user: { id: "7" } });
  const wait = await json("turn", "wait", "-100123", "007", "--timeout-ms", "20000");
  assert.is(wait.code, 0);
  assert.equal(wait.said, {
    session: "-100123",
    turn_id: "007",
    generation: 0,
    outcome: "done",
    text: "answer: hello",
    cause: null,
    reason: null,
  });
  const [list, show, turn, prefix, transcript] = await Promise.all([
    json("session", "ls", "--bot", "ada"),
    json("session", "show", "-100123"),
    json("turn", "show", "-100123", "007"),
    json("prefix", "show", "-100123"),
    cli("session", "transcript", "-100123"),
  ]);
  assert.equal([list.code, show.code, turn.code, prefix.code, transcript.code], [0, 0, 0, 0, 0]);
  assert.ok((list.said as { session: string }[]).some(({ session }) => session === "-100123"));
  const { state, open_turns, entries } = show.said as { state: string; open_turns: unknown[]; entries: number };
  assert.equal([state, open_turns, entries], ["idle", [], 1]);
  assert.equal([(turn.said as { state: string }).state, (turn.said as { outcome: string }).outcome], ["ended", "done"]);
  const frozen = prefix.said as { sha256: string; persona: string; text: string };
  const exact = await hf.sessions.prefix("-100123");
  assert.equal([frozen.sha256, frozen.text, frozen.persona], [exact?.sha256, exact?.text, "You are Ada.\n"]);
  assert.match(transcript.stdout, "  7: hello\n  bot: answer: hello");
});

test("a dead letter: ls, show, and two replays at once, which are one", async () => {
  await dead("s:dead", "ada", "t1");
  const [list, show, plain] = await Promise.all([
    json("dead-letter", "ls", "--session", "s:dead"),
    json("dead-letter", "show", "s:dead", "t1"),
    cli("dead-letter", "show", "s:dead", "t1"),
  ]);
  assert.equal([list.code, show.code, plain.code], [0, 0, 0]);
  assert.is((list.said as unknown[]).length, 1);
  const letter = show.said as {
    cause: { code: string; message: string; stack: string };
    attempts: { worker: string; started_at: string }[];
    input: string;
    user: unknown;
    waiting_behind: number;
  };
  assert.equal(
    [letter.cause.code, letter.input, letter.user, letter.waiting_behind],
    ["model_refused", "fail", { id: "7", name: "Bo" }, 0],
  );
  assert.match(letter.cause.stack, /\n\s+at /);
  assert.ok(letter.attempts[0]?.worker && letter.attempts[0]?.started_at);
  const elsewhere = await Promise.all([
    cli("turn", "show", "s:dead", "t1"),
    json("turn", "wait", "s:dead", "t1"),
    json("session", "transcript", "s:dead"),
  ]);
  assert.not.match(JSON.stringify([list.said, show.said, plain.stdout, elsewhere]), "s3cret");
  assert.match(JSON.stringify(elsewhere[2]), "provider refused");
  assert.match(plain.stdout, "> fail");

  writeFileSync(bots.file("mended"), "");
  const both = await Promise.all([
    json("dead-letter", "replay", "s:dead", "t1", "--by", "one", "--why", "mended"),
    json("dead-letter", "replay", "s:dead", "t1", "--by", "two"),
  ]);
  assert.equal(
    both.map(({ code, said }) => [code, (said as { generation: number }).generation, (said as { number: number }).number]),
    [
      [0, 1, 2],
      [0, 1, 2],
    ],
    "one replay, whoever came first",
  );
  assert.is((await hf.turns.wait({ session: "s:dead", turnId: "t1" }, { timeoutMs: 20_000 })).outcome, "done");
  assert.is(both.filter(({ said }) => (said as { already: boolean }).already).length <= 1, true);
  assert.equal(await hf.deadLetters.list({ session: "s:dead" }), []);
  assert.is((await hf.sessions.get("s:dead")).turns, 2);
  const [shown, told] = await Promise.all([cli("turn", "show", "s:dead", "t1"), cli("session", "transcript", "s:dead")]);
  assert.match(shown.stdout, /^replayed by +(?:one: mended|two)$/m);
  assert.match(told.stdout, /^ {2}replayed by (?:one: mended|two)$/m, "a replay to the tail has no entry of its own, its turn says who");
});

test("a parked session waits behind its letter; discarding lets it go on, once", async () => {
  rmSync(bots.file("mended"), { force: true });
  await dead("s:park", "strict", "t1");
  const behind = await hf.turns.send({ bot: "strict", session: "s:park", turnId: "t2", input: "hello" });
  const shown = await cli("dead-letter", "show", "s:park", "t1");
  assert.match(shown.stdout, /behind it +1 turn, waiting for a replay or a discard/);
  const discards = await Promise.all([
    json("dead-letter", "discard", "s:park", "t1", "--why", "asked again"),
    json("dead-letter", "discard", "s:park", "t1"),
  ]);
  assert.ok(discards.some(({ code }) => code === 0));
  assert.ok(discards.every(({ code }) => code === 0 || code === 3));
  assert.is((await hf.turns.wait(behind, { timeoutMs: 20_000 })).text, "answer: hello");
  const { entries } = await hf.sessions.transcript("s:park");
  assert.is(entries.filter(({ kind }) => kind === "discarded").length, 1);
});

test("a replay to the head runs before what waits, and says who and why in the log", async () => {
  await dead("s:head", "strict", "t1");
  await hf.turns.send({ bot: "strict", session: "s:head", turnId: "t2", input: "second" });
  writeFileSync(bots.file("mended"), "");
  assert.is((await json("dead-letter", "replay", "s:head", "t1", "--head", "--by", "op", "--why", "first in line")).code, 0);
  await hf.turns.wait({ session: "s:head", turnId: "t2" }, { timeoutMs: 20_000 });
  const { entries } = await hf.sessions.transcript("s:head");
  assert.equal(
    entries.filter(({ kind }) => kind === "step").map(({ turn }) => turn?.turnId),
    ["t1", "t2"],
  );
  const head = entries.find(({ kind }) => kind === "next");
  assert.equal([head?.by, head?.why], ["op", "first in line"]);
  assert.match((await cli("session", "transcript", "s:head")).stdout, /^ {2}put to the head by op: first in line$/m);
});

test("re-own wants a reason, keeps it, and the session has another bot", async () => {
  await hf.turns.send({ bot: "ada", session: "s:own", turnId: "t1", input: "hello" });
  await hf.turns.wait({ session: "s:own", turnId: "t1" }, { timeoutMs: 20_000 });
  const [unsaid, reowned] = await Promise.all([
    cli("session", "reown", "s:own", "--to", "strict"),
    json("session", "reown", "s:own", "--to", "strict", "--why", "ada retires", "--by", "op"),
  ]);
  assert.is(unsaid.code, 2);
  assert.equal(
    [reowned.code, reowned.said],
    [0, { session: "s:own", bot: "strict", owner_epoch: 1, changed: true, by: "op", why: "ada retires" }],
  );
  assert.is(await hf.sessions.prefix("s:own"), null, "the prefix is taken anew");
  assert.match((await cli("session", "transcript", "s:own")).stdout, /^ {2}given to strict by op: ada retires$/m);
  const nobody = ["session", "reown", "s:own", "--to", "nobody", "--why", "a slip"];
  const [guessed, configured] = [await cli(...nobody), await cli(...nobody, "--config", bots.config)];
  assert.match(guessed.stderr, /warning: no session belonged to bot "nobody"/);
  assert.match(configured.stderr, /warning: the config has no bot "nobody"/);
  assert.is((await cli("session", "reown", "s:own", "--to", "strict", "--why", "back", "--config", bots.config)).stderr, "");
});

test("cancel ends a turn that hangs; waiting for it says so by its exit code", async () => {
  await hf.turns.send({ bot: "ada", session: "s:cancel", turnId: "t1", input: "wait" });
  await worker.until(/hanging/);
  const late = await json("turn", "wait", "s:cancel", "t1", "--timeout-ms", "1");
  assert.equal([late.code, (late.said as { error: { code: string } }).error.code], [1, "wait_timeout"]);
  const cancelled = await json("turn", "cancel", "s:cancel", "t1");
  assert.equal([cancelled.code, (cancelled.said as { outcome: string }).outcome], [0, "cancelled"]);
  const wait = await json("turn", "wait", "s:cancel", "t1");
  assert.equal([wait.code, (wait.said as { reason: string }).reason], [1, "user"]);
});

test("inbox and memory: a note and a person's edit wait for the next turn, and wake nobody", async () => {
  await hf.turns.send({ bot: "ada", session: "s:inbox", turnId: "t1", input: "hello" });
  await hf.turns.wait({ session: "s:inbox", turnId: "t1" }, { timeoutMs: 20_000 });
  const unchanged = await json("memory", "diff", "--bot", "ada", "--session", "s:inbox", "--config", bots.config);
  assert.equal([unchanged.code, (unchanged.said as { sessions: { result: string }[] }).sessions[0]?.result], [3, "unchanged"]);
  const posted = await json("inbox", "post", "s:inbox", "the build is red");
  assert.equal([posted.code, (posted.said as { id: string }).id], [0, "note-1"]);
  writeFileSync(join(bots.memory, "notes.md"), "two\n");
  const changed = await json("memory", "diff", "--bot", "ada", "--session", "s:inbox", "--memory", bots.memory);
  const [diff] = (changed.said as { sessions: { change: { paths: unknown }; notice: string }[] }).sessions;
  assert.equal([changed.code, diff?.change.paths], [0, [{ status: "modified", path: "notes.md" }]]);
  assert.is((await json("memory", "observe", "--bot", "ada")).code, 0);
  await worker.until(/"reason":"asked on the command line"/);
  const inbox = await json("inbox", "ls", "s:inbox");
  assert.equal(inbox.said, [
    { id: "notice", text: diff?.notice },
    { id: "note-1", text: "the build is red" },
  ] as never);
  assert.is((await hf.sessions.get("s:inbox")).turns, 1);
});

test("memory observe for a bot that nobody knows: exit 3, with those that are known", async () => {
  const [guessed, configured] = [
    await cli("memory", "observe", "--bot", "nobody"),
    await cli("memory", "observe", "--bot", "nobody", "--config", bots.config),
  ];
  assert.equal([guessed.code, configured.code], [3, 3]);
  assert.match(guessed.stderr, /no session belongs to bot "nobody".*"ada"/);
  assert.match(configured.stderr, /the config has no bot "nobody"; it has "ada", "strict"/);
});

test("memory observe with Redis away: exit 4, quickly, with a message", async () => {
  const away = await runCli(["memory", "observe", "--bot", "ada"], { env: { ...env, HEADFAST_REDIS_URL: "redis://:s3cret@127.0.0.1:9" } });
  assert.is(away.code, 4);
  assert.match(away.stderr, "queue_unavailable");
  assert.not.match(away.stdout + away.stderr, "s3cret");
});

test.run();
