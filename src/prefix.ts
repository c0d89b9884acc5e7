/** `headfast/prefix`: the pure part, for people with a loop of their own. */
export { PrefixDriftError } from "./domain/errors.ts";
export type { Dialect, PrefixParts, ToolSpec } from "./domain/ports.ts";
export { cachedSequence, guard, type Prefix, prefixOf, type Recorded, sha256, sortTools } from "./domain/prefix.ts";
export { anthropicDialect } from "./models/anthropic-dialect.ts";
