/**
 * The indexes, made and checked at start. The unique ones carry the protocol: without (session, turn_id, generation) a
 * turn could be accepted twice (I4), without (session, entry_key) an outcome could be recorded twice.
 */
import type { Db } from "mongodb";
import { type ErrorCode, HeadfastError } from "../domain/errors.ts";
import type { Logger } from "../domain/ports.ts";
import type { Documents } from "./documents.ts";
import { duplicateKey, namespaceNotFound, storeError } from "./errors.ts";
import { type Setting, settingsStore } from "./texts.ts";

export interface IndexSpec {
  collection: string;
  name: string;
  key: Record<string, 1 | -1>;
  unique?: true;
  sparse?: true;
}

export const indexSpecs: readonly IndexSpec[] = [
  { collection: "turns", name: "one_turn", key: { session: 1, turn_id: 1, generation: 1 }, unique: true },
  { collection: "turns", name: "open", key: { open: 1 }, sparse: true },
  { collection: "turns", name: "letter", key: { letter: 1 }, sparse: true },
  { collection: "transcript", name: "one_entry", key: { session: 1, entry_key: 1 }, unique: true },
  { collection: "session_ownership", name: "activity", key: { active_at: -1 } },
  { collection: "session_ownership", name: "bot_activity", key: { bot_id: 1, active_at: -1 } },
];

/** Stands once all indexes stood: from then on a missing one was dropped, or lost in a restore. */
const marker = "indexes_made";

/** An index that is not there as it must be. */
export interface IndexProblem {
  collection: string;
  name: string;
  key: Record<string, 1 | -1>;
  unique: boolean;
  /** What to do. */
  advice: string;
}

/** What is missing now; changes nothing. */
export async function missingIndexes(db: Db): Promise<IndexSpec[]> {
  const missing = await Promise.all(
    [...new Set(indexSpecs.map((spec) => spec.collection))].map(async (collection) => {
      const there = await indexesOf(db, collection);
      return indexSpecs.filter((spec) => spec.collection === collection && !there.some((index) => serves(index, spec)));
    }),
  );
  return missing.flat();
}

export function problemOf(spec: IndexSpec): IndexProblem {
  const { collection, name, key } = spec;
  const kind = spec.unique ? ", unique" : spec.sparse ? ", sparse" : "";
  const advice = `collection ${collection} lacks the index ${name} (${Object.keys(key).join(", ")}${kind}); a start makes it, unless duplicates or another index of that name stand in the way: remove those first`;
  return { collection, name, key, unique: spec.unique === true, advice };
}

/**
 * Makes what is missing, then looks again.
 * @throws `index_missing` naming the index where it cannot be made; a database that had it all logs what was gone.
 */
export async function ensureIndexes(db: Db, settings: Documents<Setting>, log: Logger): Promise<void> {
  // Read before the look: where it stands, all indexes stood before the look.
  const complete = await settings.exists({ _id: marker });
  for (const spec of await missingIndexes(db)) {
    if (complete) log.warn({ code: "index_missing" satisfies ErrorCode, ...problemOf(spec) }, "an index was gone and is made again");
    await make(db, spec);
  }
  const [still] = await missingIndexes(db);
  if (still !== undefined) throw missing(still);
  if (!complete) await settingsStore(settings).once(marker, "1");
}

async function make(db: Db, { collection, key, ...spec }: IndexSpec): Promise<void> {
  try {
    await db
      .collection(collection)
      .createIndex(key, { name: spec.name, ...(spec.unique && { unique: true }), ...(spec.sparse && { sparse: true }) });
  } catch (error) {
    if (refusals.has(codeOf(error))) throw missing({ collection, key, ...spec }, error);
    throw storeError(error, `making the index ${spec.name} of ${collection}`);
  }
}

/** Duplicates; an index of that name or with those keys that is another one. */
const refusals = new Set([duplicateKey, 85, 86]);

function missing(spec: IndexSpec, cause?: unknown): HeadfastError {
  const problem = problemOf(spec);
  const why = codeOf(cause) === duplicateKey ? "there are duplicates" : "another index stands in its place";
  return new HeadfastError("index_missing", `${problem.advice}. It could not be made: ${why}`, { data: { ...problem }, cause });
}

interface StoredIndex {
  name?: string;
  key?: Record<string, unknown>;
  unique?: boolean;
  sparse?: boolean;
  partialFilterExpression?: unknown;
  collation?: unknown;
}

async function indexesOf(db: Db, collection: string): Promise<StoredIndex[]> {
  try {
    return (await db.collection(collection).listIndexes().toArray()) as StoredIndex[];
  } catch (error) {
    if (codeOf(error) === namespaceNotFound) return [];
    throw storeError(error, `listing the indexes of ${collection}`);
  }
}

/** The name does not matter. One that covers only some documents, or compares otherwise, does not serve. */
function serves(index: StoredIndex, spec: IndexSpec): boolean {
  return (
    JSON.stringify(index.key) === JSON.stringify(spec.key) &&
    (index.unique === true) === (spec.unique === true) &&
    (index.sparse === true) === (spec.sparse === true) &&
    index.partialFilterExpression === undefined &&
    index.collation === undefined
  );
}

function codeOf(error: unknown): number {
  return typeof error === "object" && error !== null && "code" in error ? Number(error.code) : Number.NaN;
}
