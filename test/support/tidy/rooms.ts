/** The rooms of the source and who may enter: the table of CONTRIBUTING.md as data, and the rules that hold it. */
import { type Finding, type Import, importsOf, type TextFile } from "./files.ts";

interface Room {
  /** Other rooms it may import from; a room always may import itself. */
  rooms: readonly string[];
  /** Packages beyond `plainPackages`. A name that ends with `/` or `:` stands for all that begin with it. */
  packages: readonly string[];
}

const everything = ["*"];

/** A room is a folder, or a file, below the root. */
export const rooms: Readonly<Record<string, Room>> = {
  "src/index.ts": { rooms: everything, packages: [] },
  "src/main.ts": { rooms: everything, packages: ["node:"] },
  "src/settings.ts": { rooms: ["src/domain"], packages: [] },
  "src/system.ts": { rooms: ["src/domain"], packages: ["node:"] },
  "src/prefix.ts": { rooms: ["src/domain", "src/models"], packages: [] },
  "src/domain": { rooms: [], packages: ["node:assert", "node:crypto"] },
  "src/actors": { rooms: ["src/domain"], packages: ["node:assert", "node:crypto"] },
  "src/queues": { rooms: ["src/domain"], packages: ["node:", "bullmq", "ioredis"] },
  "src/store": { rooms: ["src/domain"], packages: ["node:", "mongodb"] },
  "src/memory": { rooms: ["src/domain"], packages: ["node:", "simple-git"] },
  "src/models": { rooms: ["src/domain"], packages: ["node:", "gpt-tokenizer", "@anthropic-ai/sdk", "openai", "ai", "@ai-sdk/"] },
  "src/tools": { rooms: ["src/domain"], packages: ["node:"] },
  "src/host": { rooms: ["src/domain"], packages: ["node:", "fastify", "@fastify/", "@bull-board/", "fastify-type-provider-zod"] },
  "src/cli": { rooms: ["src/main.ts", "src/host", "src/system.ts", "src/domain"], packages: ["node:", "cac", "picocolors"] },
  "src/testing": {
    rooms: ["src/domain", "src/actors", "src/host", "src/memory", "src/models", "src/main.ts", "src/system.ts"],
    packages: ["node:"],
  },
  services: { rooms: [], packages: ["node:", "ioredis", "mongodb", "mongodb-memory-server-core"] },
  demo: {
    rooms: ["src/index.ts", "src/prefix.ts", "src/testing", "src/models", "services"],
    packages: ["node:", "picocolors", "ioredis", "mongodb"],
  },
  bench: { rooms: everything, packages: ["*"] },
  test: { rooms: everything, packages: ["*"] },
};

/** Libraries without a world of their own: no driver, no network, no clock. Every room but the domain and the actors may use them. */
const plainPackages = ["zod", "yaml", "picomatch", "lru-cache", "pino", "@opentelemetry/api"];
const pureRooms = ["src/domain", "src/actors", "src/prefix.ts"];

/** The room that a file lies in: the table's own name for it. */
export function roomOf(path: string): string | undefined {
  return Object.keys(rooms).find((room) => path === room || path.startsWith(`${room}/`));
}

/** Imports against the table, and source files that lie in no room. */
export function findRoomFaults(files: readonly TextFile[]): Finding[] {
  return files.flatMap((file) => {
    const name = roomOf(file.path);
    const room = name === undefined ? undefined : rooms[name];
    if (name === undefined || room === undefined) {
      return [{ path: file.path, line: 1, message: "lies in no room: move it into one of CONTRIBUTING.md's table" }];
    }
    return importsOf(file).flatMap((found) => (found.relative ? againstRooms(name, room, found) : againstPackages(name, room, found)));
  });
}

function againstRooms(name: string, room: Room, { from, line, target }: Import): Finding[] {
  const entered = roomOf(target);
  if (entered === name || room.rooms.includes("*") || (entered !== undefined && room.rooms.includes(entered))) return [];
  if (entered === undefined && target.endsWith(".json")) return [];
  const may = room.rooms.length === 0 ? "nothing of the repository but itself" : room.rooms.join(", ");
  return [{ path: from, line, message: `imports ${target}: ${name} may import ${may}; hand it in through a port of src/domain` }];
}

function againstPackages(name: string, room: Room, { from, line, target }: Import): Finding[] {
  const allowed = [...room.packages, ...(pureRooms.includes(name) ? [] : plainPackages)];
  if (allowed.some((one) => one === "*" || isOf(target, one))) return [];
  const owners = Object.entries(rooms).filter(([, { packages }]) => packages.some((one) => one !== "*" && isOf(target, one)));
  const instead =
    owners.length === 0 ? "no room has it yet: enter it in the table" : `only ${owners.map(([owner]) => owner).join(", ")} may; use a port`;
  return [{ path: from, line, message: `imports the package ${target}, which ${name} may not: ${instead}` }];
}

function isOf(target: string, allowed: string): boolean {
  return target === allowed || target.startsWith(/[/:]$/.test(allowed) ? allowed : `${allowed}/`);
}

/** Each import cycle once, told at the first of its files in order of name. */
export function findCycles(files: readonly TextFile[]): Finding[] {
  const graph = importGraph(files);
  const found = new Map<string, Finding>();
  const done = new Set<string>();
  const walk = (path: string, trail: readonly string[]): void => {
    const start = trail.indexOf(path);
    if (start >= 0) {
      const cycle = trail.slice(start).sort();
      const message = `import cycle: ${[...trail.slice(start), path].join(" → ")}; move what they share into a file of its own`;
      found.set(cycle.join(), { path: cycle[0] as string, line: 1, message });
    }
    if (start >= 0 || done.has(path)) return;
    for (const next of graph.get(path) ?? []) walk(next, [...trail, path]);
    done.add(path);
  };
  for (const path of graph.keys()) walk(path, []);
  return [...found.values()];
}

/** Files of src that no entry point reaches, and entry points of package.json that are not there. */
export function findDeadFiles(files: readonly TextFile[], packageJson: string): Finding[] {
  const graph = importGraph(files.filter(({ path }) => path.startsWith("src/")));
  const entries = entryPoints(packageJson);
  const missing = entries.filter((entry) => !graph.has(entry));
  if (missing.length > 0) return missing.map(absent);
  const reached = new Set<string>();
  const waiting = [...entries];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (reached.has(path)) continue;
    reached.add(path);
    waiting.push(...(graph.get(path) ?? []));
  }
  const dead = [...graph.keys()].filter((path) => !reached.has(path));
  return dead.map((path) => ({ path, line: 1, message: `is reached from no entry point (${entries.join(", ")}): use it or delete it` }));
}

/** While one is missing nothing is called dead: it may be what reaches the rest. */
function absent(entry: string): Finding {
  return { path: "package.json", line: 1, message: `names the entry point ${entry}, which does not exist: write it, or take the name out` };
}

/** The sources behind what package.json publishes. */
export function entryPoints(packageJson: string): string[] {
  const { bin = {}, exports = {} } = JSON.parse(packageJson) as {
    bin?: Record<string, string>;
    exports?: Record<string, { default: string } | string>;
  };
  const built = [...Object.values(exports).map((entry) => (typeof entry === "string" ? entry : entry.default)), ...Object.values(bin)];
  return built.filter((path) => path.endsWith(".js")).map((path) => path.replace(/^(\.\/)?dist\//, "src/").replace(/\.js$/, ".ts"));
}

function importGraph(files: readonly TextFile[]): Map<string, string[]> {
  const paths = new Set(files.map(({ path }) => path));
  return new Map(files.map((file) => [file.path, importsOf(file).flatMap(({ target }) => (paths.has(target) ? [target] : []))]));
}
