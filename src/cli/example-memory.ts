/** A small Memory Repository to try the chat with. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { HeadfastError } from "../domain/errors.ts";

export interface ExampleMemory {
  path: string;
  /** Removes a temporary one. */
  dispose(): void;
}

const persona = `---
title: An example
---
You are Ada, a careful assistant. You answer briefly and keep notes in your memory.
`;

const notes = `# Notes

- The kettle is on the second shelf.
`;

/**
 * Temporary, unless the chat is durable: then it lies in the user's data folder, one for each namespace, and stays.
 * @throws `configuration` where git cannot make it
 */
export function exampleMemory(env: NodeJS.ProcessEnv, durableIn: string | undefined): ExampleMemory {
  if (durableIn === undefined) {
    const folder = mkdtempSync(join(tmpdir(), "headfast-chat-"));
    return { path: make(join(folder, "memory")), dispose: () => rmSync(folder, { recursive: true, force: true }) };
  }
  const data = env.XDG_DATA_HOME || join(homedir(), ".local", "share");
  const path = join(data, "headfast", durableIn, "memory");
  return { path: existsSync(join(path, ".git")) ? path : make(path), dispose: () => undefined };
}

function make(path: string): string {
  mkdirSync(join(path, "notes"), { recursive: true });
  writeFileSync(join(path, "PERSONA.md"), persona);
  writeFileSync(join(path, "notes", "kitchen.md"), notes);
  try {
    const run = (...args: string[]): Buffer =>
      execFileSync(
        "git",
        [
          "-c",
          "core.hooksPath=/dev/null",
          "-c",
          "commit.gpgSign=false",
          "-c",
          "user.name=headfast",
          "-c",
          "user.email=headfast@localhost",
          ...args,
        ],
        { cwd: path, stdio: ["ignore", "ignore", "pipe"] },
      );
    run("init", "--quiet", "--initial-branch=main");
    run("add", "--all");
    run("commit", "--quiet", "--message", "An example to begin with");
  } catch (error) {
    throw new HeadfastError("configuration", `git cannot make the example repository in ${path}: is git installed?`, { cause: error });
  }
  return path;
}
