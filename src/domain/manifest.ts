/** Manifests: every file of a state, in one order, and the id that two equal states share on any worker. */
import { createHash } from "node:crypto";
import type { ManifestEntry } from "./records.ts";

/** By path, by code unit. Sorts a copy, and only where it is needed. */
export function sortedManifest(entries: readonly ManifestEntry[]): readonly ManifestEntry[] {
  const sorted = entries.every((entry, index) => index === 0 || (entries[index - 1]?.path ?? "") < entry.path);
  return sorted ? entries : [...entries].sort(byPath);
}

/** SHA-256 over path, mode and blob of each entry, in order. Expects a sorted manifest. */
export function manifestId(entries: readonly ManifestEntry[]): string {
  // NUL stands in no path, so that no two manifests give the same text.
  const text = entries.map(({ path, mode, blob }) => `${mode} ${blob} ${path}\0`).join("");
  return createHash("sha256").update(text).digest("hex");
}

/** Compares two things by their `path`, by code unit: the same on any machine and in any locale. */
export function byPath(a: { path: string }, b: { path: string }): number {
  return a.path < b.path ? -1 : a.path > b.path ? 1 : 0;
}
