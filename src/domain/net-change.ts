/**
 * I7. The net change of a Memory Repository: a pure function of what a session was told and of what is there now. What
 * happened in between, who did it and how often is no part of it, so made-and-reverted is nothing.
 *
 * - What the session wrote through its own tools is laid over the told state before the comparison.
 * - Renames are exact: one deleted and one added path with the same blob, and no other with that blob.
 * - A moved HEAD on the same branch with the same tree tells nothing.
 */
import { byPath } from "./manifest.ts";
import { memoryPath } from "./memory-path.ts";
import type { NetChange, PathChange } from "./notice.ts";
import type { ManifestEntry, MemoryState, Wrote } from "./records.ts";

export { type NetChange, type PathChange, renderNotice } from "./notice.ts";

/** What differs between what was told (with what the session itself wrote) and now; `null` where nothing does. */
export function netChange(told: MemoryState, wrote: readonly Wrote[], now: MemoryState): NetChange | null {
  const branch = told.branch === now.branch ? null : { from: told.branch, to: now.branch };
  const paths = told.state === now.state ? [] : pathChanges(overlaid(told.manifest, wrote, now.manifest), now.manifest);
  return branch === null && paths.length === 0 ? null : { branch, paths };
}

/** The net change between any two states, for people: nothing is laid over. */
export function diffStates(from: MemoryState, to: MemoryState): NetChange | null {
  return netChange(from, [], to);
}

/**
 * Both overlays in one, the second the later. A later write of a path takes the place of an earlier one: should somebody
 * bring the earlier text back, that is news. A write that may not have come to pass names what it wrote first and what it
 * found behind it; what it found is the session's own only where the session had put it there. What a person had put
 * there stays news.
 */
export function mergeWrote(wrote: readonly Wrote[], more: readonly Wrote[]): Wrote[] {
  const merged = new Map<string, readonly (string | null)[]>(wrote.map(({ path, blobs }) => [spelling(path), blobs]));
  for (const { path, blobs } of more) {
    const earlier = merged.get(spelling(path)) ?? [];
    merged.set(spelling(path), [...new Set(blobs.filter((blob, index) => index === 0 || earlier.includes(blob)))]);
  }
  return [...merged].map(([path, blobs]) => ({ path, blobs: [...blobs] })).sort(byPath);
}

/** The told manifest as the session itself has changed it: a path found with an accepted blob is nobody's news. */
function overlaid(told: readonly ManifestEntry[], wrote: readonly Wrote[], now: readonly ManifestEntry[]): Map<string, ManifestEntry> {
  const entries = new Map(told.map((entry) => [entry.path, entry]));
  if (wrote.length === 0) return entries;
  const current = new Map(now.map((entry) => [entry.path, entry]));
  for (const { path, blobs } of wrote) layOver(entries, spelling(path), blobs, current);
  return entries;
}

function layOver(
  entries: Map<string, ManifestEntry>,
  path: string,
  accepted: readonly (string | null)[],
  current: Map<string, ManifestEntry>,
): void {
  const found = current.get(path);
  if (!accepted.includes(found?.blob ?? null)) return;
  if (found === undefined) entries.delete(path);
  // Tools write regular files only, so a symlink with that blob is somebody else's; and a changed mode still shows.
  else if (isFile(found)) entries.set(path, { ...found, mode: fileMode(entries.get(path)) ?? found.mode });
}

function fileMode(entry: ManifestEntry | undefined): string | undefined {
  return entry !== undefined && isFile(entry) ? entry.mode : undefined;
}

function pathChanges(told: ReadonlyMap<string, ManifestEntry>, now: readonly ManifestEntry[]): PathChange[] {
  const gone = new Map(told);
  const added: ManifestEntry[] = [];
  const changes: PathChange[] = [];
  for (const entry of now) {
    const before = gone.get(entry.path);
    gone.delete(entry.path);
    if (before === undefined) added.push(entry);
    else changes.push(...changeOf(before, entry));
  }
  return [...changes, ...movedOrNot([...gone.values()], added)].sort(byPath);
}

function changeOf(before: ManifestEntry, after: ManifestEntry): PathChange[] {
  const { path } = after;
  if (before.blob === after.blob && before.mode === after.mode) return [];
  if (isRepository(before) || isRepository(after)) return [{ status: "repository", path }];
  if (before.blob === after.blob && isFile(before) && isFile(after))
    return [{ status: "mode", path, modeFrom: before.mode, modeTo: after.mode }];
  return [{ status: "modified", path }];
}

/** Pairs a deleted with an added path where exactly one of each has that blob and kind; the rest stays what it is. */
function movedOrNot(deleted: readonly ManifestEntry[], added: readonly ManifestEntry[]): PathChange[] {
  const sources = single(deleted);
  const targets = single(added);
  const changes: PathChange[] = [];
  for (const entry of added) {
    const from = targets.get(kindAndBlob(entry)) === entry ? sources.get(kindAndBlob(entry)) : undefined;
    changes.push(from ? { status: "renamed", path: entry.path, from: from.path } : { status: "added", path: entry.path });
  }
  for (const entry of deleted) {
    const moved = sources.get(kindAndBlob(entry)) === entry && targets.get(kindAndBlob(entry));
    if (!moved) changes.push({ status: "deleted", path: entry.path });
  }
  return changes;
}

/** By kind and blob: the only entry that has them, or `undefined` where several do. */
function single(entries: readonly ManifestEntry[]): Map<string, ManifestEntry | undefined> {
  const found = new Map<string, ManifestEntry | undefined>();
  for (const entry of entries) found.set(kindAndBlob(entry), found.has(kindAndBlob(entry)) ? undefined : entry);
  return found;
}

function kindAndBlob(entry: ManifestEntry): string {
  return `${isFile(entry) ? "100" : entry.mode} ${entry.blob}`;
}

function isFile(entry: ManifestEntry): boolean {
  return entry.mode.startsWith("100");
}

function isRepository(entry: ManifestEntry): boolean {
  return entry.mode === "160000";
}

/** The one spelling of a written path; what the jail would refuse was never written and matches nothing. */
function spelling(path: string): string {
  try {
    return memoryPath(path);
  } catch {
    return path;
  }
}
