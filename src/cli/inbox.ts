/** `headfast inbox`: facts that a session is told at the bottom of its next turn. Nothing here starts a turn. */
import { type Call, type Command, type ExitCode, exit } from "./command.ts";
import { withHost } from "./connect.ts";
import { shownIndented } from "./output.ts";

async function list(call: Call): Promise<ExitCode> {
  const [session = ""] = call.args;
  const items = await withHost(call, (hf) => hf.inbox.list(session));
  call.out.answer(items, () =>
    items.length === 0 ? "the inbox is empty" : items.map(({ id, text }) => shownIndented(`${id}: `, text)).join("\n"),
  );
  return items.length === 0 ? exit.nothing : exit.ok;
}

async function post(call: Call): Promise<ExitCode> {
  const [session = "", text = ""] = call.args;
  const { number } = await withHost(call, (hf) => hf.inbox.post({ session, text }));
  call.out.answer({ session, id: `note-${number}`, number }, () => `note-${number}: told with the session's next turn`);
  return exit.ok;
}

export const inboxCommands: readonly Command[] = [
  {
    name: "inbox ls",
    args: "<session>",
    text: "The pending notice and the notes not told yet",
    examples: ["headfast inbox ls tg:42"],
    run: list,
  },
  {
    name: "inbox post",
    args: "<session> <text>",
    text: "Post a note for the session's next turn; starts none",
    examples: ['headfast inbox post tg:42 "the build is red"'],
    run: post,
  },
];
