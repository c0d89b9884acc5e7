/** The driver's errors as ours: by class, code and label, never by message; the original is the cause. */
import {
  BSON,
  MongoBulkWriteError,
  MongoClientClosedError,
  MongoCompatibilityError,
  MongoError,
  MongoMissingCredentialsError,
  MongoMissingDependencyError,
  MongoNetworkError,
  MongoNotConnectedError,
  MongoOperationTimeoutError,
  MongoParseError,
  MongoServerClosedError,
  MongoServerError,
  MongoServerSelectionError,
  MongoStalePrimaryError,
  MongoTopologyClosedError,
  MongoUnexpectedServerResponseError,
  MongoWriteConcernError,
} from "mongodb";
import { type ErrorCode, HeadfastError } from "../domain/errors.ts";

export const duplicateKey = 11000;
export const commandNotFound = 59;
export const namespaceNotFound = 26;

/** Not primary, stepped down, shutting down, interrupted, timed out, locked, no majority, stale routing, disk full. */
const awayCodes = new Set([
  6, 7, 24, 43, 46, 50, 63, 64, 89, 91, 100, 112, 133, 134, 150, 175, 189, 202, 234, 262, 317, 365, 384, 462, 9001, 10058, 10107, 11600,
  11601, 11602, 13388, 13435, 13436, 14031,
]);
/** Who may do what, how one connects, and what the deployment does not offer. */
const configurationCodes = new Set([11, 13, 18, 79, 148, 334, 391, 8000]);
const tooLargeCodes = new Set([10334, 17280, 17419, 17420]);
const awayLabels = ["RetryableWriteError", "RetryableError", "TransientTransactionError", "SystemOverloadedError", "ResetPool"];

const awayClasses = [
  MongoNetworkError,
  MongoServerSelectionError,
  MongoOperationTimeoutError,
  MongoServerClosedError,
  MongoStalePrimaryError,
  MongoUnexpectedServerResponseError,
  MongoWriteConcernError,
];
const configurationClasses = [MongoParseError, MongoMissingCredentialsError, MongoMissingDependencyError, MongoCompatibilityError];
/** Not connected: the store connects before it is handed out, so its client was closed since. */
const closedClasses = [MongoClientClosedError, MongoTopologyClosedError, MongoNotConnectedError];

/** What the server refused of one document among many of a command; `cause` is the command's error. */
export class RefusedWrite extends Error {
  readonly code: number;

  constructor(code: number | undefined, cause: MongoBulkWriteError) {
    super("a document of a bulk write was refused", { cause });
    this.name = "RefusedWrite";
    this.code = Number(code);
  }
}

/** True where the write met a unique key; for an upsert and an insert alike. The error of a command of many says it of none. */
export function isDuplicateKey(error: unknown): boolean {
  if (error instanceof MongoBulkWriteError) return false;
  return (error instanceof MongoServerError || error instanceof RefusedWrite) && error.code === duplicateKey;
}

/** What the driver threw while `what` was done. Ours pass through. `wrote`: it may have been applied all the same. */
export function storeError(error: unknown, what: string, wrote = false): HeadfastError {
  if (error instanceof HeadfastError) return error;
  const code = codeOf(error);
  const meaning = code === "store_unavailable" && wrote ? uncertain : (meanings[code] ?? "the call failed");
  return new HeadfastError(code, `MongoDB, ${what}: ${meaning}${detailOf(error)}`, {
    cause: error,
    data: { operation: what },
  });
}

const meanings: Partial<Record<ErrorCode, string>> = {
  store_unavailable: "no answer from a primary in time",
  configuration: "refused by the configuration; check HEADFAST_MONGO_URL, the user and its rights",
  input_too_large: "the document is larger than MongoDB's 16 MiB",
  document_invalid: "the value cannot be stored",
  closed: "the client was closed",
};

const uncertain = "no answer from a primary, or no majority, in time; the write may or may not have been applied";

function codeOf(wrapped: unknown): ErrorCode {
  const error = unwrapped(wrapped);
  if (isOf(error, closedClasses)) return "closed";
  // The driver's own pool says this by a class that it does not export.
  if (isOf(error, awayClasses) || nameOf(error) === "MongoWaitQueueTimeoutError") return "store_unavailable";
  if (isOf(error, configurationClasses)) return "configuration";
  if (error instanceof MongoServerError || error instanceof RefusedWrite) return codeOfServer(error);
  // What the serialiser says of a document beyond its buffer.
  if (error instanceof RangeError) return "input_too_large";
  return error instanceof BSON.BSONError ? "document_invalid" : "unexpected";
}

function codeOfServer(error: MongoServerError | RefusedWrite): ErrorCode {
  const code = Number(error.code);
  if (tooLargeCodes.has(code)) return "input_too_large";
  if (configurationCodes.has(code)) return "configuration";
  const labelled = error instanceof MongoServerError && awayLabels.some((label) => error.hasErrorLabel(label));
  return awayCodes.has(code) || labelled ? "store_unavailable" : "unexpected";
}

/** What stopped a bulk write as a whole (no answer, no primary) is wrapped by the driver, and its class hidden. */
function unwrapped(error: unknown): unknown {
  return error instanceof MongoBulkWriteError && error.errorResponse instanceof Error ? error.errorResponse : error;
}

function isOf(error: unknown, classes: readonly { prototype: unknown }[]): boolean {
  return classes.some((one) => error instanceof (one as unknown as new () => unknown));
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : "";
}

/** A server's message may quote a document; its code's name says as much. */
function detailOf(wrapped: unknown): string {
  const error = unwrapped(wrapped);
  if (error instanceof RefusedWrite) return ` (code ${error.code})`;
  if (error instanceof MongoServerError) return ` (code ${error.code}${error.codeName ? `, ${error.codeName}` : ""})`;
  return error instanceof MongoError || error instanceof Error ? ` (${error.name})` : "";
}
