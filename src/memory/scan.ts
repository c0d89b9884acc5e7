/**
 * The manifest of a working tree: `git add -A` into an index of our own, then a list of that index. The index is kept, so
 * that a look reads only what changed; its name says what its blob ids depend on, so that a manifest is a function of the
 * tree and its terms alone, whichever worker looks and whatever it saw before.
 *
 * Repositories inside are never kept in the index: git would run `git status` in each of them, by *its* configuration.
 */
import { createHash } from "node:crypto";
import { stat, writeFile } from "node:fs/promises";
import { devNull } from "node:os";
import { join } from "node:path";
import { HeadfastError } from "../domain/errors.ts";
import { pathBytes } from "../domain/memory-path.ts";
import type { System } from "../domain/ports.ts";
import { codeOf } from "./folder.ts";
import { addCommand, forgetCommand, listCommand } from "./git-commands.ts";
import { digestOf, type Listing, listingOf } from "./listing.ts";
import { excludePatterns, unbornRepositories } from "./nested.ts";
import type { Terms } from "./probe.ts";
import { type GitPlace, runGit } from "./runner.ts";
import {
  borrowIndex,
  keepIndex,
  keptIndex,
  type LookFolder,
  openLookFolder,
  ownGitDir,
  removeLookFolder,
  type StateFolder,
} from "./state-folder.ts";

/** What the kept index held when it was listed last. An index that git did not write again holds the same. */
interface Kept extends Listing {
  kind: string;
  /** `null` where the index does not say all: repositories inside are not in it. */
  stamp: string | null;
}

interface Attempt {
  look: LookFolder;
  place: GitPlace;
  kind: string;
  terms: Terms;
  unborn: readonly string[];
}

export class Scanner {
  readonly #state: StateFolder;
  readonly #root: string;
  readonly #system: System;
  #kept: Kept | undefined;

  constructor(state: StateFolder, root: string, system: System) {
    this.#state = state;
    this.#root = root;
    this.#system = system;
  }

  /** @throws {HeadfastError} `memory_unreadable` */
  async scan(terms: Terms): Promise<Listing> {
    const kind = kindOf(terms);
    const kept = await keptIndex(this.#state, kind);
    if (kept !== null) {
      const manifest = await this.#attempt(terms, kind, kept, []).catch(() => null); // Our index may be what is broken.
      if (manifest !== null) return manifest;
    }
    return this.#afresh(terms, kind);
  }

  /** With an empty index; a repository inside that has no commit yet, which git refuses to add, is set aside. */
  async #afresh(terms: Terms, kind: string): Promise<Listing> {
    try {
      return must(await this.#attempt(terms, kind, null, []));
    } catch (error) {
      const unborn = await this.#unborn(terms);
      if (unborn.length === 0) throw error;
      return must(await this.#attempt(terms, kind, null, unborn));
    }
  }

  /** Runs something with the git folder of our own, and scratch space that ends with it. */
  withOwnPlace<T>(terms: Terms, run: (place: GitPlace) => Promise<T>): Promise<T> {
    return this.#inLookFolder(terms, "", [], ({ place }) => run(place));
  }

  async #unborn(terms: Terms): Promise<string[]> {
    return this.withOwnPlace(terms, (place) => unbornRepositories(this.#root, place));
  }

  /** `null`: the kept index was filled under other rules than the tree has now. */
  #attempt(terms: Terms, kind: string, kept: string | null, unborn: readonly string[]): Promise<Listing | null> {
    return this.#inLookFolder(terms, kind, unborn, async (attempt) => {
      const warm = kept !== null && (await borrowIndex(this.#state, kept, attempt.look));
      await this.#add(attempt);
      const stamp = await stampOf(attempt.look.index);
      if (warm && stamp === this.#kept?.stamp && kind === this.#kept.kind) return this.#kept;
      const listing = await this.#list(attempt);
      const name = `index-${kind}-${listing.rules}`;
      return warm && name !== kept ? null : this.#keep(attempt, name, listing);
    });
  }

  async #inLookFolder<T>(terms: Terms, kind: string, unborn: readonly string[], run: (attempt: Attempt) => Promise<T>): Promise<T> {
    const look = await openLookFolder(this.#state, this.#system.id());
    try {
      const gitDir = await ownGitDir(this.#state, terms, this.#system.id());
      const own = { gitDir, index: look.index, objects: look.objects };
      return await run({ look, place: { root: this.#root, home: this.#state.home, system: this.#system, own }, kind, terms, unborn });
    } finally {
      await removeLookFolder(look);
    }
  }

  async #add({ look, place, terms, unborn }: Attempt): Promise<void> {
    if (unborn.length === 0) return runGit(place, addCommand(terms.settings.values, devNull));
    const file = join(look.path, "exclude");
    await writeFile(file, excludePatterns(unborn));
    return runGit(place, addCommand(terms.settings.values, file));
  }

  /** Read only where git's list is another than the last time: git may write an index anew that holds the same. */
  async #list({ place, terms, unborn }: Attempt): Promise<Listing> {
    const output = await runGit(place, listCommand);
    const digest = digestOf(output, unborn);
    return digest === this.#kept?.digest ? this.#kept : listingOf(output, digest, unborn, terms.objectFormat);
  }

  async #keep({ place, look, kind, unborn }: Attempt, name: string, listing: Listing): Promise<Listing> {
    const { inside } = listing;
    if (inside.length > 0) await runGit(place, forgetCommand, Buffer.concat(inside.flatMap((path) => [pathBytes(path), Buffer.of(0)])));
    const stamp = inside.length + unborn.length === 0 ? await stampOf(look.index) : null;
    await keepIndex(this.#state, name, look);
    this.#kept = { ...listing, kind, stamp };
    return this.#kept;
  }
}

/** What blob ids depend on besides the tree. */
function kindOf(terms: Terms): string {
  const hash = createHash("sha256");
  for (const part of [terms.objectFormat, ...terms.settings.values, terms.exclude, terms.attributes]) hash.update(part).update("\0");
  return hash.digest("hex").slice(0, 16);
}

/** Tells one writing of an index from another. */
async function stampOf(index: string): Promise<string> {
  try {
    const { ino, size, mtimeNs } = await stat(index, { bigint: true });
    return `${ino}:${size}:${mtimeNs}`;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return "none"; // Git writes none for an empty tree.
    throw error;
  }
}

function must(manifest: Listing | null): Listing {
  if (manifest === null) throw new HeadfastError("unexpected", "a fresh index was taken for a kept one");
  return manifest;
}
