/** `headfast session`: look at sessions, check them, give one to another bot. */
import { userInfo } from "node:os";
import { HeadfastError } from "../domain/errors.ts";
import type { Entry, Ownership, Turn } from "../domain/records.ts";
import type { SessionView } from "../host/sessions.ts";
import type { Headfast } from "../main.ts";
import { type Call, type Command, type ExitCode, exit } from "./command.ts";
import { configuredBots } from "./config-file.ts";
import { withHost } from "./connect.ts";
import { fields, shown, shownIndented, table } from "./output.ts";
import { redactedCause } from "./redact.ts";

/** Who acts, unless `--by` says it. */
export function operator(call: Pick<Call, "options">): string {
  return call.options.text("by") ?? userInfo().username;
}

const listLimit = { flag: "--limit <n>", text: "At most so many, 1 to 1000; default 100" };

export function limitOf({ options }: Pick<Call, "options">): number {
  return options.whole("limit", { min: 1, max: 1000 }) ?? 100;
}

async function list(call: Call): Promise<ExitCode> {
  const bot = call.options.text("bot");
  const rows = await withHost(call, async (hf) => {
    const owners = await hf.sessions.list({ ...(bot !== undefined && { bot }), limit: limitOf(call) });
    return Promise.all(owners.map((owner) => row(hf, owner)));
  });
  const cells = rows.map(({ session, bot: name, state, turns, open, activeAt }) => [
    session,
    name,
    state,
    String(turns ?? "-"),
    String(open ?? "-"),
    activeAt,
  ]);
  call.out.answer(rows, () => (rows.length === 0 ? "no sessions" : table(["SESSION", "BOT", "STATE", "TURNS", "OPEN", "ACTIVE"], cells)));
  return rows.length === 0 ? exit.nothing : exit.ok;
}

interface Row {
  session: string;
  bot: string;
  state: SessionView["state"] | "invalid";
  turns: number | null;
  open: number | null;
  activeAt: string;
}

/** A session whose documents cannot be read is a row too: the others are still to be seen. */
async function row(hf: Headfast, owner: Ownership): Promise<Row> {
  const base = { session: owner.session, bot: owner.bot, activeAt: new Date(owner.activeAt).toISOString() };
  try {
    const { state, turns, open } = await hf.sessions.get(owner.session);
    return { ...base, state, turns, open };
  } catch (error) {
    if (!(error instanceof HeadfastError) || error.code !== "document_invalid") throw error;
    return { ...base, state: "invalid", turns: null, open: null };
  }
}

async function show(call: Call): Promise<ExitCode> {
  const [session = ""] = call.args;
  const seen = await withHost(call, async (hf) => {
    const view = await hf.sessions.get(session);
    return { view, openTurns: await hf.sessions.openTurns(session), inbox: (await hf.inbox.list(session)).length };
  });
  call.out.answer(viewOf(seen.view, seen.openTurns, seen.inbox), () => viewText(seen.view, seen.openTurns, seen.inbox));
  return exit.ok;
}

function viewOf(
  { owner, checkpoint, seq, turns, open, state }: SessionView,
  openTurns: readonly Turn[],
  inbox: number,
): Record<string, unknown> {
  const { session, bot, ownerEpoch, baseline, role, provenance, parent, personaSnapshotAt, prefixSha256, dialect, activeAt, createdAt } =
    owner;
  return {
    ...{ session, bot, ownerEpoch, role, provenance, parent, state, turns, open, entries: seq, inbox },
    ...{ baseline, personaSnapshotAt: personaSnapshotAt ?? null, prefixSha256: prefixSha256 ?? null, dialect: dialect ?? null },
    parked: checkpoint.parked,
    heard: checkpoint.heard,
    openTurns: openTurns.map(({ turnId, generation, number, acceptedAt, attemptsSpent, crashes }) => ({
      turnId,
      generation,
      number,
      acceptedAt,
      attemptsSpent,
      crashes,
    })),
    createdAt,
    activeAt: new Date(activeAt).toISOString(),
  };
}

function viewText(view: SessionView, openTurns: readonly Turn[], inbox: number): string {
  const { owner, checkpoint, state } = view;
  const parked = checkpoint.parked === null ? "" : ` (waits for a replay or discard of turn ${checkpoint.parked.turnId})`;
  const snapshot =
    owner.baseline === null
      ? "not taken yet"
      : owner.personaSnapshotAt === undefined
        ? "open: the repository was not ready"
        : `of ${owner.personaSnapshotAt}`;
  const pairs: [string, unknown][] = [
    ["session", owner.session],
    ["bot", owner.bot],
    ["state", `${state}${parked}`],
    ["turns", `${view.turns}, ${view.open} without an outcome`],
    ["entries", view.seq],
    ["inbox", inbox],
    ["persona", snapshot],
    ["prefix", owner.prefixSha256],
    ["owner epoch", owner.ownerEpoch],
    ["created", owner.createdAt],
    ["active", new Date(owner.activeAt).toISOString()],
  ];
  if (openTurns.length === 0) return fields(pairs);
  const cells = openTurns.map(({ number, turnId, generation, acceptedAt, attemptsSpent }) => [
    String(number),
    turnId,
    String(generation),
    acceptedAt,
    String(attemptsSpent),
  ]);
  return `${fields(pairs)}\n\n${table(["NUMBER", "TURN", "GENERATION", "ACCEPTED", "ATTEMPTS"], cells)}`;
}

async function reown(call: Call): Promise<ExitCode> {
  const [session = ""] = call.args;
  const to = call.options.required("to");
  const actor = { by: operator(call), why: call.options.required("why") };
  const served = await configuredBots(call);
  const { before, owner, known } = await withHost(call, async (hf) => {
    const before = (await hf.sessions.get(session)).owner.ownerEpoch;
    const known = served?.some(({ name }) => name === to) ?? (await hf.sessions.list({ bot: to, limit: 1 })).length > 0;
    return { before, known, owner: await hf.sessions.reown(session, to, actor) };
  });
  const { bot, ownerEpoch } = owner;
  const changed = ownerEpoch !== before;
  call.out.answer({ session, bot, ownerEpoch, changed, ...actor }, () =>
    changed
      ? `the session belongs to ${shown(bot)} now (owner epoch ${ownerEpoch}); its prefix is taken anew with the next turn`
      : `the session belongs to ${shown(bot)} already; nothing changed`,
  );
  if (!known)
    call.out.remark(
      `headfast: warning: ${served === undefined ? "no session belonged to" : "the config has no"} bot ${JSON.stringify(to)}: is a worker running that serves it? The session's turns wait until one is`,
    );
  return exit.ok;
}

async function verify(call: Call): Promise<ExitCode> {
  const [session = ""] = call.args;
  const entries = await withHost(call, (hf) => hf.sessions.verify(session));
  call.out.answer({ session, entries, valid: true }, () => `valid: ${entries} entries, each follows the one before`);
  return exit.ok;
}

async function transcript(call: Call): Promise<ExitCode> {
  const [session = ""] = call.args;
  const after = call.options.whole("after", { min: 0 }) ?? 0;
  const { entries, cursor, more } = await withHost(call, async (hf) => {
    const read = await hf.sessions.transcript(session, { after, limit: limitOf(call) });
    return { ...read, entries: await Promise.all(read.entries.map((entry) => withReplay(hf, entry))) };
  });
  const page = { entries: entries.map((entry) => ({ ...entry, cause: entry.cause && redactedCause(entry.cause) })), cursor, more };
  call.out.answer({ session, ...page }, () => {
    const rest = more ? [`(more: --after ${cursor})`] : [];
    return entries.length === 0 ? "nothing was said" : [...page.entries.map(entryText), ...rest].join("\n\n");
  });
  return entries.length === 0 ? exit.nothing : exit.ok;
}

type ShownEntry = Entry & { replay: NonNullable<Turn["replay"]> | null };

/** With who had the turn run again, where it starts as another generation. */
async function withReplay(hf: Headfast, entry: Entry): Promise<ShownEntry> {
  const { session, turn, step } = entry;
  if (turn === null || turn.generation === 0 || (step ?? 1) > 1) return { ...entry, replay: null };
  const replayed = await hf.internals.ledger.store.turns.byId(session, turn.turnId, turn.generation);
  return { ...entry, replay: replayed?.replay ?? null };
}

/** One entry for people: what was said, by whom, and what it decided. Nothing foreign begins a line of its own. */
function entryText(entry: ShownEntry): string {
  const { seq, kind, at } = entry;
  const turn =
    entry.turn === null
      ? ""
      : ` turn ${shown(entry.turn.turnId)}${entry.turn.generation > 0 ? `, generation ${entry.turn.generation}` : ""}`;
  const outcome = entry.outcome === null ? "" : ` → ${entry.outcome}`;
  const cause = entry.cause === null ? [] : [shownIndented(`  ${entry.cause.code}: `, entry.cause.message, "    ")];
  const who = entry.by === null ? [] : [byLine(owned[kind] ?? "by", entry.by, entry.why, entry.checkpoint.bot)];
  const replay = entry.replay === null ? [] : [byLine("replayed by", entry.replay.by, entry.replay.why)];
  return [`#${seq} ${kind}${turn}${outcome}  ${at}`, ...cause, ...who, ...replay, ...entry.messages.flatMap(messageLines)].join("\n");
}

/** What an entry of an operator did, before who did it. */
const owned: Partial<Record<Entry["kind"], string>> = { reowned: "given to", discarded: "discarded by", next: "put to the head by" };

function byLine(did: string, by: string, why: string | null, bot = ""): string {
  const what = did === "given to" ? `${did} ${shown(bot)} by` : did;
  return shownIndented(`  ${what} ${shown(by)}`, why === null ? "" : `: ${why}`, "    ");
}

function messageLines(message: Entry["messages"][number]): string[] {
  switch (message.role) {
    case "user":
      return message.blocks.map((block) =>
        said(block.type === "input" ? (block.user?.name ?? block.user?.id ?? "user") : block.type, block.text),
      );
    case "assistant":
      return [
        ...(message.text === "" ? [] : [said("bot", message.text)]),
        ...message.toolCalls.map((call) => said("calls", `${call.name} ${call.arguments}`)),
      ];
    default:
      return message.results.map((result) => said(result.isError ? "tool error" : "tool", result.text));
  }
}

function said(who: string, text: string): string {
  return shownIndented(`  ${shown(who)}: `, text, "    ");
}

export const sessionCommands: readonly Command[] = [
  {
    name: "session ls",
    text: "List sessions, newest activity first",
    options: [{ flag: "--bot <name>", text: "Only this bot's" }, listLimit],
    examples: ["headfast session ls --bot ada"],
    run: list,
  },
  {
    name: "session show",
    args: "<session>",
    text: "One session: owner, state, open turns, persona snapshot",
    examples: ["headfast session show tg:42 --json"],
    run: show,
  },
  {
    name: "session reown",
    args: "<session>",
    text: "Give the session to another bot; its prefix is taken anew, queued turns stay",
    options: [
      { flag: "--to <bot>", text: "The new owner" },
      { flag: "--why <text>", text: "Why; kept in the log" },
      { flag: "--by <who>", text: "Who; kept in the log; default the user of this shell" },
    ],
    examples: ['headfast session reown tg:42 --to grace --why "ada retires"'],
    run: reown,
  },
  {
    name: "session verify",
    args: "<session>",
    text: "Read the whole log and check its hash chain",
    examples: ["headfast session verify tg:42"],
    run: verify,
  },
  {
    name: "session transcript",
    args: "<session>",
    text: "What was said, and what became of each turn",
    options: [{ flag: "--after <seq>", text: "Only entries after this one" }, listLimit],
    examples: ["headfast session transcript tg:42 --after 120"],
    run: transcript,
  },
];
