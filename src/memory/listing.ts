/** A manifest, out of git's list of an index: pure. */
import { createHash } from "node:crypto";
import { HeadfastError } from "../domain/errors.ts";
import { limits } from "../domain/limits.ts";
import { manifestId, sortedManifest } from "../domain/manifest.ts";
import type { ManifestEntry } from "../domain/records.ts";
import { parseStaged } from "./git-commands.ts";
import { isTemporary } from "./jail.ts";

export interface Listing {
  /** The state's id. */
  id: string;
  entries: readonly ManifestEntry[];
  /** Of what it was made from. */
  digest: string;
  /** The tree's own rules. A change of them changes what a fresh index would hold, while a kept one would stay as it is. */
  rules: string;
  /** Repositories inside that are in the index. */
  inside: readonly string[];
}

/** Equal for equal lists and the same repositories set aside. */
export function digestOf(output: Buffer, unborn: readonly string[]): string {
  return createHash("sha256").update(unborn.join("\0")).update("\0\0").update(output).digest("hex");
}

/** @throws {HeadfastError} `memory_unreadable` over `limits.manifestPathsMax` */
export function listingOf(output: Buffer, digest: string, unborn: readonly string[], objectFormat: string): Listing {
  const staged = parsed(output);
  if (staged.length > limits.manifestPathsMax)
    throw unreadable(`the Memory Repository holds ${staged.length} files, the limit is ${limits.manifestPathsMax}`);
  const blob = "0".repeat(objectFormat === "sha256" ? 64 : 40);
  const all = [...staged, ...unborn.map((path) => ({ path, mode: "160000", blob }))];
  const entries = sortedManifest(all.filter((entry) => !isTemporary(entry.path)));
  const inside = staged.filter((entry) => entry.mode === "160000").map((entry) => entry.path);
  return { id: manifestId(entries), entries, digest, rules: rulesOf(entries), inside };
}

function parsed(output: Buffer): ManifestEntry[] {
  try {
    return parseStaged(output);
  } catch (error) {
    throw unreadable((error as Error).message, error);
  }
}

function unreadable(message: string, cause?: unknown): HeadfastError {
  return new HeadfastError("memory_unreadable", message, { data: { command: "git ls-files", exitCode: 0 }, cause });
}

function rulesOf(entries: readonly ManifestEntry[]): string {
  const rules = entries.filter(({ path }) => path.endsWith(".gitattributes") || path.endsWith(".gitignore"));
  return manifestId(rules).slice(0, 16);
}
