/**
 * A Memory Repository in memory, for the simulator and for hosts' tests: it passes the conformance suite of the real one.
 * People's edits, commits and faults are methods beside the port.
 */
import { createHash } from "node:crypto";
import { HeadfastError } from "../domain/errors.ts";
import { limits } from "../domain/limits.ts";
import { manifestId, sortedManifest } from "../domain/manifest.ts";
import { memoryPath } from "../domain/memory-path.ts";
import type { Look, MemoryFiles, MemoryRepository, Persona } from "../domain/ports.ts";
import type { ManifestEntry, MemoryState } from "../domain/records.ts";
import { splitPersona } from "../memory/persona.ts";

interface StoredFile {
  bytes: Buffer;
  mode: "100644" | "100755";
}

/** What a person does to the repository, and what may befall it. */
export interface MemoryRepositoryFake extends MemoryRepository {
  /** A person writes a file. */
  edit(path: string, text: string | Uint8Array): void;
  remove(path: string): void;
  rename(from: string, to: string): void;
  chmod(path: string, executable: boolean): void;
  /** Another branch, the same tree; `null` detaches HEAD. */
  switchTo(branch: string | null): void;
  /** Moves HEAD; the tree stays. */
  commit(message: string): void;
  /** From now on every look and read fails with `memory_unreadable`; `null` repairs it. */
  breakWith(reason: string | null): void;
  /** From now on it is not ready; `null`: ready again. */
  unready(reason: string | null): void;
  /** How many scans were made. */
  readonly looks: number;
}

/** A ready repository on the unborn branch `main`, with these files. */
export function memoryRepository(files: Record<string, string> = {}): MemoryRepositoryFake {
  const fake = new Fake();
  for (const [path, text] of Object.entries(files)) fake.edit(path, text);
  return fake;
}

class Fake implements MemoryRepositoryFake {
  readonly #files = new Map<string, StoredFile>();
  #branch: string | null = "main";
  #head: string | null = null;
  #broken: string | null = null;
  #unready: string | null = null;
  looks = 0;

  readonly files: MemoryFiles = {
    read: async (path) => this.#read(path),
    write: async (path, bytes) => this.#write(path, bytes),
    list: async (folder, limit) => this.#list(folder, limit),
  };

  async persona(): Promise<Persona> {
    this.#checkBroken("git rev-parse");
    if (this.#unready !== null) return { state: "not_ready", reason: this.#unready };
    const file = this.#files.get("PERSONA.md");
    return { state: "ready", body: file === undefined ? "" : splitPersona(file.bytes).body };
  }

  async look(): Promise<Look> {
    this.looks += 1;
    this.#checkBroken("git add");
    if (this.#unready !== null) return { state: "not_ready", reason: this.#unready };
    return { state: "ready", seen: this.#seen() };
  }

  async blobNow(path: string): Promise<string | null> {
    const file = this.#files.get(memoryPath(path));
    if (file === undefined) this.#checkFolders(memoryPath(path));
    return file === undefined ? null : blobId(file.bytes);
  }

  async blobOf(path: string, bytes: Uint8Array): Promise<string> {
    memoryPath(path);
    return blobId(bytes);
  }

  edit(path: string, text: string | Uint8Array): void {
    const clean = memoryPath(path);
    this.#files.set(clean, { bytes: Buffer.from(text as string), mode: this.#files.get(clean)?.mode ?? "100644" });
  }

  remove(path: string): void {
    this.#existing(path);
    this.#files.delete(memoryPath(path));
  }

  rename(from: string, to: string): void {
    const file = this.#existing(from);
    this.#files.delete(memoryPath(from));
    this.#files.set(memoryPath(to), file);
  }

  chmod(path: string, executable: boolean): void {
    this.#existing(path).mode = executable ? "100755" : "100644";
  }

  switchTo(branch: string | null): void {
    this.#branch = branch;
  }

  commit(message: string): void {
    this.#head = createHash("sha1").update(`${this.#head} ${this.#seen().state} ${message}`).digest("hex");
  }

  breakWith(reason: string | null): void {
    this.#broken = reason;
  }

  unready(reason: string | null): void {
    this.#unready = reason;
  }

  #seen(): MemoryState {
    const entries = [...this.#files].map(([path, { bytes, mode }]): ManifestEntry => ({ path, mode, blob: blobId(bytes) }));
    const manifest = sortedManifest(entries);
    return { state: manifestId(manifest), branch: this.#branch, head: this.#head, manifest };
  }

  #existing(path: string): StoredFile {
    const file = this.#files.get(memoryPath(path));
    if (file === undefined) throw refused(path, "there is no such file");
    return file;
  }

  #read(path: string): Uint8Array {
    const { bytes } = this.#existing(path);
    if (bytes.byteLength > limits.toolFileBytesMax) throw refused(path, `it is larger than ${limits.toolFileBytesMax} bytes`);
    return Uint8Array.from(bytes);
  }

  #write(path: string, bytes: Uint8Array): void {
    const clean = memoryPath(path);
    this.#checkFolders(clean);
    if (clean === "") throw refused(path, "it is not a name for a file");
    if (bytes.byteLength > limits.toolFileBytesMax) throw refused(path, `it is larger than ${limits.toolFileBytesMax} bytes`);
    this.edit(clean, bytes);
  }

  /** As on a disk: a file is no folder, and a folder is no file. */
  #checkFolders(path: string): void {
    for (const other of this.#files.keys()) {
      if (path.startsWith(`${other}/`)) throw refused(path, `${other} is not a folder`);
      if (other.startsWith(`${path}/`)) throw refused(path, "it is not a regular file");
    }
  }

  #list(folder: string, limit: number): { paths: string[]; more: boolean } {
    const clean = memoryPath(folder);
    const all = [...this.#files.keys()].filter((path) => clean === "" || path.startsWith(`${clean}/`)).sort(byCodeUnit);
    if (all.length === 0 && clean !== "") throw refused(folder, "there is no such folder");
    return { paths: all.slice(0, limit), more: all.length > limit };
  }

  #checkBroken(command: string): void {
    if (this.#broken !== null) throw new HeadfastError("memory_unreadable", this.#broken, { data: { command, exitCode: 128 } });
  }
}

function byCodeUnit(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** As git computes it, without conversions: nothing in memory has attributes. */
function blobId(bytes: Uint8Array): string {
  return createHash("sha1").update(`blob ${bytes.byteLength}\0`).update(bytes).digest("hex");
}

function refused(path: string, reason: string): HeadfastError {
  return new HeadfastError("invalid_input", `/memory/${path} is refused: ${reason}`, { data: { path, reason } });
}
