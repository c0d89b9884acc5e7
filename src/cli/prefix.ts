/** `headfast prefix`: the frozen bytes before the conversation. */
import { type Call, type Command, type ExitCode, exit } from "./command.ts";
import { withHost } from "./connect.ts";
import { shownLines } from "./output.ts";

async function show(call: Call): Promise<ExitCode> {
  const [session = ""] = call.args;
  const prefix = await withHost(call, (hf) => hf.sessions.prefix(session));
  if (prefix === null) {
    call.out.answer(null, () => "no prefix was taken yet: the session's first turn takes it");
    return exit.nothing;
  }
  const { text, sha256, dialect, persona, personaAt, rolePrompts, tools } = prefix;
  call.out.remark(
    `sha256 ${sha256}, dialect ${dialect}, persona ${personaAt === null ? "open" : `of ${personaAt}`}, ${tools.length} tools`,
  );
  if (call.out.json)
    call.out.answer({ session, sha256, bytes: Buffer.byteLength(text), dialect, personaAt, persona, rolePrompts, tools, text }, () => "");
  else call.out.raw(call.io.stdout.isTTY ? `${shownLines(text)}\n` : text); // into a file or a pipe: the exact bytes
  return exit.ok;
}

export const prefixCommands: readonly Command[] = [
  {
    name: "prefix show",
    args: "<session>",
    text: "The exact frozen bytes on stdout, their hash on stderr",
    examples: ["headfast prefix show tg:42 | sha256sum"],
    run: show,
  },
];
