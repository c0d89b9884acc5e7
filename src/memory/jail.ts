/**
 * Jailed files of a Memory Repository: regular files below its root, reached through real folders only. `memoryPath` is the
 * lexical half; this is the half that asks the file system. Each component is looked at before it is passed and the last
 * one is opened with O_NOFOLLOW. What remains: a process with write access to the repository that swaps a folder for a
 * symlink between the look and the open. Such a process could have changed what the link leads to as well.
 */
import { constants, type Dirent } from "node:fs";
import { type FileHandle, mkdir, open, readdir, rename, unlink } from "node:fs/promises";
import { join } from "node:path";
import { HeadfastError } from "../domain/errors.ts";
import { limits } from "../domain/limits.ts";
import { memoryPath, memoryRoot, pathBytes, pathText } from "../domain/memory-path.ts";
import type { MemoryFiles, System } from "../domain/ports.ts";
import { codeOf, lstatOrNull, unreadableFile } from "./folder.ts";

const readFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const createFlags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

/** Names of files half written. One that a crash left is no part of any state and is removed by a later write beside it. */
const temporary = /^\.headfast-[0-9a-f-]+\.tmp$/u;

/** Whether the last name of a path is that of a file half written. */
export function isTemporary(path: string): boolean {
  return temporary.test(path.slice(path.lastIndexOf("/") + 1));
}

/** The files of the repository whose real top folder `rootOf` answers at each call. */
export function jailedFiles(rootOf: () => Promise<string>, system: System): MemoryFiles {
  return {
    read: async (path) => readWhole(await rootOf(), path),
    write: async (path, bytes) => writeWhole(await rootOf(), path, bytes, system),
    list: async (folder, limit) => listFiles(await rootOf(), folder, limit),
  };
}

/**
 * Opens a regular file, never waiting for one that is a pipe; `null` where the name is surely free.
 * @throws {HeadfastError} `invalid_input` for a symlink or special file, `memory_unreadable` where it cannot be told.
 */
export async function openRegular(root: string, path: string): Promise<FileHandle | null> {
  const clean = memoryPath(path);
  if (clean === "" || !(await passFolders(root, foldersOf(clean), clean))) return null;
  let file: FileHandle;
  try {
    file = await open(place(root, clean), readFlags);
  } catch (error) {
    return notOpened(clean, error);
  }
  if ((await file.stat()).isFile()) return file;
  await file.close();
  throw refused(clean, "it is not a regular file");
}

function notOpened(path: string, error: unknown): null {
  const code = codeOf(error);
  if (code === "ENOENT" || code === "ENOTDIR") return null;
  if (code === "ELOOP" || code === "EMLINK") throw refused(path, "it is a symlink");
  // A socket, or a device without a driver.
  if (code === "ENXIO" || code === "ENODEV") throw refused(path, "it is not a regular file");
  throw unreadableFile(`${memoryRoot}/${path}`, error);
}

/** False where one is missing. @throws {HeadfastError} `invalid_input` where one is a symlink or no folder. */
async function passFolders(root: string, folders: readonly string[], path: string): Promise<boolean> {
  for (const folder of folders) {
    const found = await lstatOrNull(place(root, folder)).catch((error) => {
      throw unreadableFile(`${memoryRoot}/${folder}`, error);
    });
    if (found === null) return false;
    if (found.isSymbolicLink()) throw refused(path, `${memoryRoot}/${folder} is a symlink`);
    if (!found.isDirectory()) throw refused(path, `${memoryRoot}/${folder} is not a folder`);
  }
  return true;
}

/** `a/b/c` → `a`, `a/b`. */
function foldersOf(path: string): string[] {
  const names = path.split("/");
  return names.slice(1).map((_, index) => names.slice(0, index + 1).join("/"));
}

/** The file system's name of a path; a Buffer where the bytes are not UTF-8. */
function place(root: string, path: string): string | Buffer {
  const bytes = pathBytes(path);
  const text = bytes.toString("utf8");
  if (Buffer.from(text).equals(bytes)) return join(root, text);
  return Buffer.concat([Buffer.from(`${root}/`), bytes]);
}

async function readWhole(root: string, path: string): Promise<Uint8Array> {
  const file = await openRegular(root, path);
  if (file === null) throw refused(path, "there is no such file");
  try {
    return await readBounded(file, limits.toolFileBytesMax, () => refused(path, `it is larger than ${limits.toolFileBytesMax} bytes`));
  } finally {
    await file.close();
  }
}

/** Reads to the end, but never more than `bytesMax`: the size is not believed, for the file may grow. */
export async function readBounded(file: FileHandle, bytesMax: number, tooLarge: () => Error): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for (let total = 0; ; ) {
    const { bytesRead, buffer } = await file.read({
      buffer: Buffer.allocUnsafe(Math.min(64 * 1024, bytesMax + 1 - total)),
      position: total,
    });
    if (bytesRead === 0) return Buffer.concat(chunks);
    chunks.push(buffer.subarray(0, bytesRead));
    total += bytesRead;
    if (total > bytesMax) throw tooLarge();
  }
}

async function writeWhole(root: string, path: string, bytes: Uint8Array, system: System): Promise<void> {
  const clean = memoryPath(path);
  if (clean === "" || isTemporary(clean)) throw refused(path, "it is not a name for a file");
  if (bytes.byteLength > limits.toolFileBytesMax)
    throw refused(path, `${bytes.byteLength} bytes are more than the limit of ${limits.toolFileBytesMax}`);
  await makeFolders(root, clean);
  const mode = await modeToKeep(root, clean);
  const folder = clean.includes("/") ? `${clean.slice(0, clean.lastIndexOf("/"))}/` : "";
  const half = `${folder}.headfast-${system.id()}.tmp`;
  await removeLeftovers(root, folder, system);
  try {
    await writeSynced(place(root, half), bytes, mode);
    await rename(place(root, half), place(root, clean));
  } catch (error) {
    await unlink(place(root, half)).catch(() => undefined); // The first failure is the one to tell.
    throw unwritable(clean, error);
  }
}

async function makeFolders(root: string, path: string): Promise<void> {
  for (const folder of foldersOf(path)) {
    if (await passFolders(root, [folder], path)) continue;
    await mkdir(place(root, folder)).catch((error) => {
      if (codeOf(error) !== "EEXIST") throw unwritable(path, error);
    });
    await passFolders(root, [folder], path);
  }
}

/** An executable stays one. @throws {HeadfastError} `invalid_input` for what is no regular file. */
async function modeToKeep(root: string, path: string): Promise<number> {
  const found = await lstatOrNull(place(root, path));
  if (found === null) return 0o666;
  if (!found.isFile()) throw refused(path, found.isSymbolicLink() ? "it is a symlink" : "it is not a regular file");
  return Number(found.mode) & 0o777;
}

async function writeSynced(path: string | Buffer, bytes: Uint8Array, mode: number): Promise<void> {
  const file = await open(path, createFlags, mode);
  try {
    await file.writeFile(bytes);
    if (mode !== 0o666) await file.chmod(mode);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Only what no running write can still own is removed. */
async function removeLeftovers(root: string, folder: string, system: System): Promise<void> {
  const names = (await readdir(place(root, folder))).filter((name) => temporary.test(name));
  for (const name of names) {
    const file = place(root, `${folder}${name}`);
    const found = await lstatOrNull(file);
    if (found !== null && system.now() - Number(found.mtimeMs) > limits.leftoverMs) await unlink(file).catch(() => undefined); // Another write was faster.
  }
}

async function listFiles(root: string, folder: string, limit: number): Promise<{ paths: string[]; more: boolean }> {
  const clean = memoryPath(folder);
  const found = clean === "" || (await passFolders(root, [...foldersOf(clean), clean], clean));
  if (!found) throw refused(folder, "there is no such folder");
  const paths: string[] = [];
  for await (const path of filesBelow(root, clean)) {
    if (paths.length === limit) return { paths, more: true };
    paths.push(path);
  }
  return { paths, more: false };
}

/** In order of the whole path by code unit: a folder sorts as its name with the slash that follows. */
async function* filesBelow(root: string, folder: string): AsyncGenerator<string> {
  const entries = (await entriesOf(root, folder)).map((entry) => ({ entry, name: pathText(entry.name) }));
  const sorted = entries.map(({ entry, name }) => ({
    folder: entry.isDirectory(),
    file: entry.isFile(),
    key: entry.isDirectory() ? `${name}/` : name,
    path: folder === "" ? name : `${folder}/${name}`,
    name,
  }));
  for (const { folder: isFolder, file, path, name } of sorted.sort((a, b) => (a.key < b.key ? -1 : 1))) {
    if (isRefused(name) || isTemporary(name)) continue;
    if (isFolder) yield* filesBelow(root, path);
    else if (file) yield path;
  }
}

async function entriesOf(root: string, folder: string): Promise<Dirent<Buffer>[]> {
  try {
    return await readdir(place(root, folder), { withFileTypes: true, encoding: "buffer" });
  } catch (error) {
    if (codeOf(error) === "ENOENT") return []; // Removed while it was listed.
    throw unreadableFile(`${memoryRoot}/${folder}`, error);
  }
}

function isRefused(name: string): boolean {
  try {
    memoryPath(name);
    return false;
  } catch {
    return true;
  }
}

function refused(path: string, reason: string): HeadfastError {
  const shown = `${memoryRoot}/${path.slice(0, 200)}`;
  return new HeadfastError("invalid_input", `${shown} is refused: ${reason}`, { data: { path: path.slice(0, 200), reason } });
}

function unwritable(path: string, error: unknown): HeadfastError {
  if (error instanceof HeadfastError) return error;
  return new HeadfastError("tool_failed", `${memoryRoot}/${path} cannot be written: ${(error as Error).message}`, {
    data: { path, errno: codeOf(error) },
    cause: error,
  });
}
