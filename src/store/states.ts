/**
 * `memory_states`: manifests by content hash. `_id` is the hash for the first document and hash#n for the further ones
 * of a large manifest; each holds a slice of it, compressed by itself, so that writers of different releases may race.
 * The first is written last: where it is, all are.
 */
import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import { Binary } from "mongodb";
import { numberedId } from "../domain/ids.ts";
import { limits } from "../domain/limits.ts";
import type { Inserted, StateStore } from "../domain/ports.ts";
import { type ManifestEntry, recordVersion } from "../domain/records.ts";
import type { Documents, Key, Shape } from "./documents.ts";
import { type Codec, id, Mismatch, whole } from "./mapping.ts";

export interface StatePart {
  v: number;
  id: string;
  /** How many documents the manifest has. */
  parts: number;
  /** Gzip of JSON rows [path, mode, blob]. */
  rows: Uint8Array;
}

const bytes: Codec<Uint8Array> = {
  encode: (value) => new Binary(value),
  decode(stored) {
    if (stored instanceof Binary) return stored.value();
    throw new Mismatch("must be binary data");
  },
};

export const statesShape: Shape<StatePart> = {
  collection: "memory_states",
  keyOf: (part) => ({ _id: part.id }),
  fields: { v: ["v", whole], id: ["_id", id("id")], parts: ["parts", whole], rows: ["rows", bytes] },
};

type Row = [path: string, mode: string, blob: string];

const compress = promisify(gzip);
const expand = promisify(gunzip);

async function packed(entries: readonly ManifestEntry[]): Promise<Uint8Array> {
  return compress(JSON.stringify(entries.map(({ path, mode, blob }): Row => [path, mode, blob])));
}

async function unpacked(states: Documents<StatePart>, part: StatePart): Promise<ManifestEntry[]> {
  try {
    const rows = JSON.parse((await expand(part.rows)).toString("utf8")) as Row[];
    return rows.map(([path, mode, blob]) => ({ path, mode, blob }));
  } catch (error) {
    throw states.broken(part.id, "rows must be a compressed manifest", error);
  }
}

function keyOf(state: string, n: number): Key {
  return { _id: n === 0 ? state : numberedId(state, n) };
}

export function stateStore(states: Documents<StatePart>): StateStore {
  return {
    async put(state, manifest) {
      if (await states.exists({ _id: state })) return "inserted";
      const size = limits.statePathsPerDocument;
      const parts = Math.max(1, Math.ceil(manifest.length / size));
      let first: Inserted = "duplicate";
      for (let n = parts - 1; n >= 0; n -= 1) {
        const rows = await packed(manifest.slice(n * size, (n + 1) * size));
        first = await states.insert({ v: recordVersion, id: keyOf(state, n)._id, parts, rows });
      }
      return first;
    },

    async get(state) {
      const first = await states.get({ _id: state });
      if (first === undefined) return undefined;
      const more = await states.dense((n) => keyOf(state, n + 1), first.parts - 1);
      if (more.length < first.parts - 1) throw states.broken(state, "parts must all be there");
      const slices = await Promise.all([first, ...more].map((part) => unpacked(states, part)));
      return slices.flat();
    },
  };
}
