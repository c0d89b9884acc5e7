/**
 * The Memory Repository on git: the port's real adapter. It owns a cache in the worker's state folder and nothing in the
 * repository, which it only reads, but for the files that a tool writes through the jail. No timer, watcher or handle is
 * held between calls (I10).
 */
import { HeadfastError } from "../domain/errors.ts";
import { limits } from "../domain/limits.ts";
import { memoryPath } from "../domain/memory-path.ts";
import type { Look, MemoryRepository, Persona, System } from "../domain/ports.ts";
import { lstatOrNull, openFolder, unreadableFile } from "./folder.ts";
import { hashCommand } from "./git-commands.ts";
import { jailedFiles, openRegular, readBounded } from "./jail.ts";
import type { Listing } from "./listing.ts";
import { splitPersona, tooLarge } from "./persona.ts";
import { openWorkTree, probe, type Terms, type Where } from "./probe.ts";
import { type GitInput, type GitPlace, runGit } from "./runner.ts";
import { Scanner } from "./scan.ts";
import { sharedLook } from "./shared-look.ts";
import { defaultStateFolder, openStateFolder, removeLeftovers, type StateFolder } from "./state-folder.ts";

export interface GitRepositoryOptions {
  /** The repository's top folder. */
  path: string;
  /** For caches of this machine's workers; default: a folder of this user below the system's temporary folder. */
  stateFolder?: string;
  system: System;
}

/** A real folder with a `.git`, and what is kept for it between looks. */
interface Opened {
  root: string;
  state: StateFolder;
  place: GitPlace;
  scanner: Scanner;
  /** Of the last look: the next one is begun under them, and done again if they have changed. */
  terms: Terms | undefined;
}

/** The port over a git repository on this machine's disk or a shared volume. Reads nothing before it is asked. */
export function gitRepository(options: GitRepositoryOptions): MemoryRepository {
  const repository = new GitRepository(options);
  return {
    persona: () => repository.persona(),
    look: sharedLook(() => repository.look()),
    blobNow: (path) => repository.blobNow(path),
    blobOf: (path, bytes) => repository.blobOf(path, bytes),
    files: jailedFiles(async () => (await repository.opened()).root, options.system),
  };
}

class GitRepository {
  readonly #options: GitRepositoryOptions;
  #opened: Opened | undefined;

  constructor(options: GitRepositoryOptions) {
    this.#options = options;
  }

  async persona(): Promise<Persona> {
    const opened = await this.#open();
    if (!("root" in opened)) return opened;
    await openWorkTree(opened.place); // I6: ready is what git opens as a working tree.
    const bytes = await readPersona(opened.root);
    if (bytes === null) return { state: "ready", body: "" };
    const { body, warnings } = splitPersona(bytes);
    return { state: "ready", body, ...(warnings.length > 0 && { warnings }) };
  }

  async look(): Promise<Look> {
    const opened = await this.#open();
    if (!("root" in opened)) return opened;
    const [where, manifest] = await this.#see(opened);
    return { state: "ready", seen: { state: manifest.id, ...where, manifest: manifest.entries } };
  }

  /** All commands at once, under the terms of the last look; only a change of the terms asks for a second scan. */
  async #see(opened: Opened): Promise<[Where, Listing]> {
    const assumed = opened.terms;
    const scanned =
      assumed === undefined
        ? null
        : opened.scanner.scan(assumed).then(
            (manifest) => ({ manifest }),
            (error: unknown) => ({ error }),
          );
    const { terms, where } = await settled(probe(opened.place, assumed), scanned);
    const first = await scanned;
    opened.terms = terms;
    if (first === null || assumed === undefined || !sameTerms(terms, assumed)) return [where, await opened.scanner.scan(terms)];
    if ("error" in first) throw first.error;
    return [where, first.manifest];
  }

  async blobNow(path: string): Promise<string | null> {
    const opened = await this.opened();
    const clean = memoryPath(path);
    const file = await openRegular(opened.root, clean);
    if (file === null) return null;
    try {
      return await this.#hash(opened, clean, { fd: file.fd });
    } finally {
      await file.close();
    }
  }

  async blobOf(path: string, bytes: Uint8Array): Promise<string> {
    return this.#hash(await this.opened(), memoryPath(path), bytes);
  }

  async #hash(opened: Opened, path: string, input: GitInput): Promise<string> {
    const { terms } = await probe(opened.place, opened.terms);
    return opened.scanner.withOwnPlace(terms, (place) => runGit(place, hashCommand(terms.settings.values, path), input));
  }

  /** For calls that need a repository. @throws {HeadfastError} `memory_unreadable` where there is none */
  async opened(): Promise<Opened> {
    const opened = await this.#open();
    if ("root" in opened) return opened;
    throw new HeadfastError("memory_unreadable", opened.reason, { data: { path: this.#options.path } });
  }

  async #open(): Promise<Opened | { state: "not_ready"; reason: string }> {
    const folder = await openFolder(this.#options.path);
    if (folder.state === "not_ready") return folder;
    if (this.#opened?.root !== folder.root) this.#opened = await this.#prepare(folder.root);
    return this.#opened;
  }

  async #prepare(root: string): Promise<Opened> {
    const { system, stateFolder } = this.#options;
    const state = await openStateFolder(stateFolder ?? defaultStateFolder(), root);
    await removeLeftovers(state, system);
    return { root, state, place: { root, home: state.home, system }, scanner: new Scanner(state, root, system), terms: undefined };
  }
}

/** Settles as `wanted` does, but never before `other` has ended: no git of ours outlives its look. */
async function settled<T>(wanted: Promise<T>, other: Promise<unknown> | null): Promise<T> {
  try {
    return await wanted;
  } finally {
    await other;
  }
}

function sameTerms(a: Terms, b: Terms): boolean {
  const text = a.objectFormat === b.objectFormat && a.settings.values.join("\0") === b.settings.values.join("\0");
  return text && a.exclude.equals(b.exclude) && a.attributes.equals(b.attributes);
}

const readsMax = 3;

/** The file's bytes; `null` where it is surely absent. Read again where somebody wrote to it in between. */
async function readPersona(root: string): Promise<Buffer | null> {
  for (let reads = 1; ; reads += 1) {
    const file = await openPersona(root);
    if (file === null) return null;
    try {
      const before = await file.stat({ bigint: true });
      const bytes = await readBounded(file, limits.personaFileBytesMax, () =>
        tooLarge("PERSONA.md", Number(before.size), limits.personaFileBytesMax),
      );
      const after = await file.stat({ bigint: true });
      if (before.mtimeNs === after.mtimeNs && BigInt(bytes.length) === after.size) return bytes;
      if (reads === readsMax)
        throw new HeadfastError("memory_unreadable", "PERSONA.md is being written to; it is read again later", {
          data: { path: "PERSONA.md" },
        });
    } catch (error) {
      throw error instanceof HeadfastError ? error : unreadableFile("PERSONA.md", error);
    } finally {
      await file.close();
    }
  }
}

/** A symlink, a folder or a pipe in its place is a failure to read, never an empty persona (I6). */
async function openPersona(root: string): ReturnType<typeof openRegular> {
  try {
    return await openRegular(root, "PERSONA.md");
  } catch (error) {
    if (!(error instanceof HeadfastError) || error.code !== "invalid_input") throw error;
    const found = await lstatOrNull(`${root}/PERSONA.md`);
    throw new HeadfastError(
      "memory_unreadable",
      `PERSONA.md ${found?.isSymbolicLink() ? "is a symlink; it is not followed" : "is not a regular file"}`,
      { data: { path: "PERSONA.md" }, cause: error },
    );
  }
}
