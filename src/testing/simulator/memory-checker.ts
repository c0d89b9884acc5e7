/** I7: what changed in the Memory Repository reaches each session that lived through it, once, and nothing else does. */
import type { SessionId } from "../../domain/ids.ts";
import type { Entry, Heard, ManifestEntry } from "../../domain/records.ts";
import type { History } from "./history.ts";
import { demand } from "./log-checker.ts";
import type { OwnWrite } from "./world.ts";

interface Told {
  epoch: number;
  heard: Heard;
  /** Where the session's own writes of this window begin. */
  from: number;
  before: number;
}

export class MemoryChecker {
  readonly #told = new Map<SessionId, Told>();
  readonly #ownWrites: readonly OwnWrite[];
  readonly #history: History;

  constructor(ownWrites: readonly OwnWrite[], history: History) {
    this.#ownWrites = ownWrites;
    this.#history = history;
  }

  /** What a session was told last. */
  heard(session: SessionId): Heard | undefined {
    return this.#told.get(session)?.heard;
  }

  /** `baseline`: what stands as the silent first look of the entry's owner epoch. */
  follow(entry: Entry, baseline: Heard | null, manifestOf: (id: string) => readonly ManifestEntry[]): void {
    const { heard, ownerEpoch } = entry.checkpoint;
    if (entry.kind !== "step" || heard === null) {
      demand(entry.notice === null || isFailure(entry.notice), "I7", `entry ${entry.seq} tells a notice without having heard`);
      return;
    }
    const known = this.#told.get(entry.session);
    const told: Told = known?.epoch === ownerEpoch ? known : { epoch: ownerEpoch, heard: baseline ?? heard, from: 0, before: 0 };
    if (entry.step === 1) this.#checkNotice(entry, told, heard, manifestOf);
    else
      demand(entry.notice === null && heard.state === told.heard.state, "I7", `step ${entry.step} heard something in the middle of a turn`);
    const moved = entry.step === 1 && !isFailure(entry.notice ?? "");
    this.#told.set(entry.session, {
      epoch: ownerEpoch,
      heard,
      from: moved ? told.before : told.from,
      before: moved ? this.#ownWrites.length : told.before,
    });
  }

  #checkNotice(entry: Entry, told: Told, heard: Heard, manifestOf: (id: string) => readonly ManifestEntry[]): void {
    if (entry.notice !== null && isFailure(entry.notice)) {
      demand(heard.state === told.heard.state, "I7", "a failed look moved what was heard");
      return;
    }
    const named = pathsIn(entry.notice ?? "");
    const before = byPath(manifestOf(told.heard.state));
    const now = byPath(manifestOf(heard.state));
    for (const path of new Set([...before.keys(), ...now.keys(), ...named]))
      this.#checkPath(entry, told, path, before.get(path), now.get(path), named.has(path));
    const branch = (entry.notice ?? "").includes("\nbranch: ");
    demand(
      branch === (told.heard.branch !== heard.branch),
      "I7",
      `the branch went from ${told.heard.branch} to ${heard.branch}; told: ${branch}`,
    );
  }

  #checkPath(entry: Entry, told: Told, path: string, before: string | undefined, now: string | undefined, named: boolean): void {
    const own = this.#ownWrites.slice(told.from).filter((write) => write.session === entry.session && write.path === path);
    const ours = now !== undefined && own.some((write) => now.endsWith(write.blob));
    const blurred = own.length > 0 && (this.#history.disturbances.get(entry.session) ?? 0) > 0; // a write that was cut off may accept both
    if (named)
      demand(
        (before !== now && !ours) || own.length > 0,
        "I7",
        `${path} was told but is as the session last heard${ours ? ", by its own write" : ""}`,
      );
    if (named && ours && !blurred && own.length > 0) demand(before === now, "I7", `${path} was told although the session wrote it itself`);
    if (!named && before !== now) demand(ours, "I7", `${path} changed (${before} to ${now}) and was not told at entry ${entry.seq}`);
  }
}

function isFailure(notice: string): boolean {
  return notice.startsWith("The Memory Repository could not be looked at");
}

function byPath(manifest: readonly ManifestEntry[]): Map<string, string> {
  return new Map(manifest.map((entry) => [entry.path, `${entry.mode} ${entry.blob}`]));
}

function pathsIn(notice: string): Set<string> {
  return new Set([...notice.matchAll(/"([^"]*)"/gu)].map((match) => match[1] ?? "").filter((name) => !branches.has(name)));
}

const branches = new Set(["main", "side"]);
