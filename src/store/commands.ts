/** Many writes, or many point reads, in one command of the driver. A lone one goes as the driver's own single call. */
import { type AnyBulkWriteOperation, BSON, type BulkWriteResult, type Collection, type Filter, MongoBulkWriteError } from "mongodb";
import { HeadfastError } from "../domain/errors.ts";
import type { Outcome } from "./batches.ts";
import { RefusedWrite } from "./errors.ts";
import type { Stored } from "./mapping.ts";

/** What is used of a driver's collection. */
export type DriverCollection = Pick<
  Collection<Stored>,
  "collectionName" | "insertOne" | "findOne" | "find" | "updateOne" | "initializeUnorderedBulkOp"
>;

/** Of one document. */
export type Write = Extract<AnyBulkWriteOperation<Stored>, { insertOne: unknown } | { updateOne: unknown }>;

/** The error of the document that was sent at that place of a command, if it has one. */
type ErrorOf = (index: number) => unknown;

const done = { value: undefined };

/**
 * One unordered command of inserts, or of updates. Each has its own outcome: the server's error on that document, or none.
 * Without an answer or a majority, whatever has no error of its own has that one: it may or may not have been applied.
 */
export async function writeAll(collection: DriverCollection, writes: readonly Write[]): Promise<Outcome<void>[]> {
  const [first, ...more] = writes;
  if (first === undefined) return [];
  if (more.length === 0) {
    await writeAlone(collection, first);
    return [done];
  }
  const bulk = collection.initializeUnorderedBulkOp();
  const outcomes: Outcome<void>[] = [];
  const sent: number[] = [];
  for (const [n, write] of writes.entries()) {
    // Serialised here: one that cannot be is left out and harms no other.
    outcomes[n] = attempt(() => void bulk.raw(write as AnyBulkWriteOperation));
    if (!("error" in outcomes[n])) sent.push(n);
  }
  if (sent.length === 0) return outcomes;
  const errorOf = await errorsOf(() => bulk.execute(), "insertOne" in first ? sent.length : 0);
  for (const [index, n] of sent.entries()) {
    const error = errorOf(index);
    if (error !== undefined) outcomes[n] = { error };
  }
  return outcomes;
}

async function writeAlone(collection: DriverCollection, write: Write): Promise<void> {
  if ("insertOne" in write) await collection.insertOne(write.insertOne.document);
  else await collection.updateOne(write.updateOne.filter, write.updateOne.update, { upsert: write.updateOne.upsert === true });
}

function attempt(work: () => void): Outcome<void> {
  try {
    return { value: work() };
  } catch (error) {
    return { error };
  }
}

/** `inserts`: how many documents the server must account for. */
async function errorsOf(execute: () => Promise<BulkWriteResult>, inserts: number): Promise<ErrorOf> {
  try {
    const { insertedCount } = await execute();
    return () => unaccounted(insertedCount, inserts);
  } catch (error) {
    // No answer, or a refusal of the whole command: the driver wraps it as if it were of one document.
    if (!(error instanceof MongoBulkWriteError) || error.errorResponse instanceof Error) return () => error;
    const { result } = error;
    const own = new Map(result.getWriteErrors().map((one) => [one.index, new RefusedWrite(one.code, error)]));
    const lacksMajority = result.getWriteConcernError() !== undefined;
    const others = lacksMajority ? unknown("there is no majority", error) : unaccounted(result.insertedCount + own.size, inserts);
    return (index) => own.get(index) ?? others;
  }
}

/** A server that stops in the middle of a command need not name what it has not come to. */
function unaccounted(told: number, inserts: number): HeadfastError | undefined {
  return told >= inserts ? undefined : unknown(`the server tells of ${told} of ${inserts} documents`);
}

function unknown(why: string, cause?: unknown): HeadfastError {
  return new HeadfastError("store_unavailable", `${why}; each write of the command may or may not stand`, { cause });
}

export interface PointRead {
  _id: string;
  /** The whole filter: `_id`, and what routes the call. */
  filter: Filter<Stored>;
  session: string | undefined;
}

/** What stands under each `_id`. An `_id` that is asked for twice is read once. */
export async function readAll(collection: DriverCollection, reads: readonly PointRead[]): Promise<Outcome<Stored | null>[]> {
  const ids = [...new Set(reads.map((read) => read._id))];
  const [first] = reads;
  if (first === undefined) return [];
  if (ids.length === 1) {
    const value = (await collection.findOne(first.filter)) ?? null;
    return reads.map(() => ({ value }));
  }
  try {
    const byId = await readTogether(collection, ids, reads);
    return reads.map(({ _id }) => ({ value: byId.get(_id) ?? null }));
  } catch (error) {
    if (!(error instanceof BSON.BSONError)) throw error;
    // One of them is no BSON: each alone, so that it harms no other.
    return Promise.all(reads.map((read) => readAlone(collection, read)));
  }
}

async function readTogether(collection: DriverCollection, ids: string[], reads: readonly PointRead[]): Promise<Map<string, Stored>> {
  const sessions = new Set(reads.flatMap(({ session }) => session ?? []));
  const filter = { _id: { $in: ids }, ...(sessions.size > 0 && { session: { $in: [...sessions] } }) };
  // One more than there can be: the server then knows that it is through, and nobody asks again.
  const documents = await collection.find(filter, { batchSize: ids.length + 1 }).toArray();
  return new Map(documents.map((document) => [document._id, document]));
}

async function readAlone(collection: DriverCollection, { filter }: PointRead): Promise<Outcome<Stored | null>> {
  try {
    return { value: (await collection.findOne(filter)) ?? null };
  } catch (error) {
    return { error };
  }
}
