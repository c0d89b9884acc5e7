/** Acts (a), (b) and (c): several sessions at once, a persona edited mid-session, notes edited between and in turns. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { sha256 } from "../bodies.ts";
import {
  answeredInOrder,
  type Claim,
  type LogRow,
  newPersonaForNewSession,
  noticesAre,
  noticesAtBottom,
  prefixStayed,
  severalWorked,
} from "../claims.ts";
import { addLine, notes, personaLines } from "../memory.ts";
import { concurrency, type Stage } from "../stage.ts";
import { bodiesOf, endings, entries, say, sendAll } from "./turns.ts";

/** Two workers take three sessions each at a time; six sessions are held in their first turn until all are in it. */
export async function sessionsAndTurns(stage: Stage): Promise<Claim[]> {
  const sessions = Array.from({ length: 2 * concurrency }, (_, i) => `slack:C${i + 1}`);
  const sent = new Map(sessions.map((session) => [session, ["1", "2", "3"].map((n) => `${session}:${n}`)]));
  const inputs = ["[hold all-six] Good morning.", "Which boats are out?", "And who is back on Friday?"];
  const ends = await Promise.all(
    [...sent].map(([session, turnIds]) =>
      sendAll(
        stage,
        "ada",
        session,
        turnIds.map((turnId, i) => [turnId, inputs[i] ?? ""]),
      ),
    ),
  );
  for (const session of sessions) await stage.signals.held(`${session}:1`);
  stage.signals.open("all-six");
  await Promise.all(ends.flat().map((end) => end()));
  const nameOf = (worker: string): string => stage.workers.nameOf(worker);
  const filter = { session: { $in: sessions } };
  return [
    answeredInOrder("each session's turns ran in the order they were sent, one at a time", sent, await endings(stage, filter), nameOf),
    severalWorked("both worker processes took part", await stage.evidence.distinct("transcript", "worker", filter), nameOf),
  ];
}

export async function personaEdited(stage: Stage): Promise<Claim[]> {
  const [old, fresh] = ["slack:C8:old", "slack:C8:new"];
  const file = join(stage.memory, "PERSONA.md");
  await say(stage, "ada", old, "old-1", "Who are you?");
  const before = sha256(readFileSync(file, "utf8"));
  addLine(stage.memory, "PERSONA.md", personaLines.editedMidSession);
  const after = sha256(readFileSync(file, "utf8"));
  await say(stage, "ada", old, "old-2", "Are you still the same?");
  await say(stage, "ada", old, "old-3", "And now?");
  await say(stage, "ada", fresh, "new-1", "Who are you?");
  const logged = await stage.evidence.distinct("transcript", "prefix_sha256", { session: old });
  const snapshots = await stage.evidence.find<{ _id: string; persona_snapshot?: string }>(
    "session_ownership",
    { _id: { $in: [old, fresh] } },
    ["persona_snapshot"],
    { _id: 1 },
  );
  return [
    prefixStayed("the old session's prefix is the same bytes before and after the edit", logged, bodiesOf(stage, old), { before, after }),
    newPersonaForNewSession(
      `only the new session's snapshot has the new line (${JSON.stringify(personaLines.editedMidSession)})`,
      snapshots,
      { old, fresh },
      personaLines.editedMidSession,
    ),
  ];
}

export async function notesEdited(stage: Stage): Promise<Claim[]> {
  const session = "telegram:-100123";
  const [plan, people, own] = [`${notes}/plan.md`, `${notes}/people.md`, `${notes}/own.md`];
  await say(stage, "ada", session, "notes-1", "Good evening.");
  addLine(stage.memory, plan, "The Heron goes out on Monday.");
  await say(stage, "ada", session, "notes-2", "What is new?");
  const [end] = await sendAll(stage, "ada", session, [["notes-3", "[hold note-edited] Take your time with this one."]]);
  await stage.signals.held("notes-3");
  addLine(stage.memory, people, "Mara is away until Thursday.");
  stage.signals.open("note-edited");
  await end?.();
  await say(stage, "ada", session, "notes-4", "Anything else?");
  await say(stage, "ada", session, "notes-5", `[write ${own}] The Heron needs a new rope.`);
  await say(stage, "ada", session, "notes-6", "Thank you.");
  const expected = new Map([
    ["notes-1", null],
    ["notes-2", plan],
    ["notes-3", null],
    ["notes-4", people],
    ["notes-5", null],
    ["notes-6", null],
  ]);
  const log = await entries(stage, { session }, "turn", "notice");
  return [
    noticesAre(
      "one notice for each edit of a person (2: between turns, 4: made while 3 ran), none for the bot's own write (5, 6)",
      log,
      expected,
    ),
    wroteItself("the bot did write, in turn 5", log, stage, own),
    noticesAtBottom("a notice stands at the bottom, behind all that was sent before", bodiesOf(stage, session), ["notes-2", "notes-4"]),
  ];
}

/** Without it, "no notice for the own write" would be easy. */
function wroteItself(claim: string, log: { query: string; result: LogRow[] }, stage: Stage, path: string): Claim {
  const steps = log.result.filter((row) => row.turn?.turn_id === "notes-5").length;
  const text = readFileSync(join(stage.memory, path), "utf8");
  return { claim, ok: steps === 2 && text.includes("rope"), query: `cat ${path}`, shown: `${text.trim()} (the turn has ${steps} steps)` };
}
