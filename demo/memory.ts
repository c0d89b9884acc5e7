/** The Memory Repository that the demo plays on: one of its own, or a clone of the user's, which itself is only read. */
import { execFile } from "node:child_process";
import { appendFileSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";

const exec = promisify(execFile);

/** Where the acts put the notes that people and the bot write: a folder that no repository of a user has. */
export const notes = "headfast-demo-notes";

const persona = `---
title: Ada
---
# Ada

You are Ada, the assistant of a small team that restores and rents out old canal boats. You have been with the team for
three years; you know its boats, its habits and its customers, and you are asked about all of them every day.

## How you speak

- You are brief. Two or three sentences are enough for most questions, and a list is better than a long sentence.
- You are exact about names, dates and sums. When you do not know one, you say so and say who would know.
- You never flatter, and you never apologise for things that are not your fault.
- You answer in the language in which you were asked. Names of boats are never translated.

## What you look after

1. The plan of the season: which boat is where, who has rented it, and when it comes back.
2. The workshop's list: what is broken, what was ordered, what may not leave the yard until somebody has looked at it.
3. What people told you to remember. You write it down on the same day, in a file of its own or under its heading.

## How you work

Before you answer a question about a boat, you look into your memory; what you were told last week may have changed.
When a file was changed since you last read it, you read it again before you rely on it. You keep one fact in one place,
and where two files disagree you ask, instead of choosing. You do not move or delete what a person wrote; you add to it,
and you sign with your name and the date. When somebody asks you for a list, you sort it by date, the next one first.

## What you do not do

You promise no discount, no repair and no date that is not in the plan. You give nobody's telephone number to anybody but
the team. You do not guess what the weather will be like. When a customer is angry, you say what will happen next and who
will call, and you tell Mara, who owns the yard, on the same day.
`;

/** Text lines that the acts add to PERSONA.md. */
export const personaLines = {
  editedMidSession: "From today on you end each answer with the name of a boat.",
  editedAmongTwins: "From today on you greet people with their first name.",
};

/** Makes the repository in `folder`, on a clone of `source` where one is given. Answers where PERSONA.md came from, for people. */
export async function prepareMemory(folder: string, source: string | null): Promise<string> {
  const origin = source === null ? await freshRepository(folder) : await cloneOf(resolve(source), folder);
  mkdirSync(join(folder, notes), { recursive: true });
  for (const name of ["plan.md", "people.md"]) writeFileSync(join(folder, notes, name), `# ${name}\n`);
  await git(folder, "add", "--force", "--", notes, "PERSONA.md");
  await git(folder, "commit", "--quiet", "--no-verify", "--allow-empty", "--message", "What the demo needs");
  return origin;
}

async function freshRepository(folder: string): Promise<string> {
  mkdirSync(folder);
  await git(folder, "init", "--quiet");
  writeFileSync(join(folder, "PERSONA.md"), persona);
  return "a repository made for the demo";
}

async function cloneOf(source: string, folder: string): Promise<string> {
  if (!existsSync(source)) throw new Error(`--memory ${source}: there is no such folder`);
  try {
    await git(dirname(folder), "clone", "--quiet", "--no-hardlinks", "--", source, folder);
  } catch (error) {
    throw new Error(
      `--memory ${source}: git cannot clone it: ${error instanceof Error ? error.message.split("\n").slice(1).join(" ").trim() : error}`,
    );
  }
  if (existsSync(join(folder, "PERSONA.md"))) return `a clone of ${source}`;
  writeFileSync(join(folder, "PERSONA.md"), persona);
  return `a clone of ${source}, which has no PERSONA.md: one was written into the clone`;
}

/** A line more at the end of a file of the repository, as a person's editor leaves it. */
export function addLine(memory: string, path: string, line: string): void {
  appendFileSync(join(memory, path), `\n${line}\n`);
}

/** Without what the user's own configuration would add: hooks, signatures, downloads of large files. */
async function git(cwd: string, ...args: string[]): Promise<void> {
  const settings = [
    "user.name=Headfast demo",
    "user.email=demo@localhost",
    "commit.gpgSign=false",
    "core.hooksPath=/dev/null",
    "init.defaultBranch=main",
  ];
  const env = { ...process.env, GIT_TERMINAL_PROMPT: "0", GIT_LFS_SKIP_SMUDGE: "1" };
  await exec("git", [...settings.flatMap((setting) => ["-c", setting]), ...args], { cwd, env });
}
