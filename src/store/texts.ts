/** Small collections that are written once: `prefix_parts` by hash, `settings` by name, `write_journal` by call. */
import type { JournalStore, PartsStore, SettingsStore } from "../domain/ports.ts";
import { recordVersion, type WriteIntent } from "../domain/records.ts";
import type { Documents, Key, Shape } from "./documents.ts";
import { id, nullable, text, whole } from "./mapping.ts";

export interface Part {
  v: number;
  sha256: string;
  text: string;
}

export const partsShape: Shape<Part> = {
  collection: "prefix_parts",
  keyOf: (part) => ({ _id: part.sha256 }),
  fields: { v: ["v", whole], sha256: ["_id", id("sha256")], text: ["text", text] },
};

export function partsStore(parts: Documents<Part>): PartsStore {
  return {
    put: (sha256, content) => parts.insert({ v: recordVersion, sha256, text: content }),
    get: async (sha256) => (await parts.get({ _id: sha256 }))?.text,
  };
}

export interface Setting {
  v: number;
  name: string;
  value: string;
}

export const settingsShape: Shape<Setting> = {
  collection: "settings",
  keyOf: (setting) => ({ _id: setting.name }),
  fields: { v: ["v", whole], name: ["_id", id("name")], value: ["value", text] },
};

export function settingsStore(settings: Documents<Setting>): SettingsStore {
  return {
    async once(name, value) {
      const { _id, ...rest } = settings.encode({ v: recordVersion, name, value });
      return (await settings.standing({ _id }, {}, { $setOnInsert: rest })).value;
    },
  };
}

export const journalShape: Shape<WriteIntent> = {
  collection: "write_journal",
  keyOf: (intent) => intentKey(intent.session, intent.callId, intent.index),
  fields: {
    v: ["v", whole],
    session: ["session", id("session")],
    callId: ["call_id", text],
    index: ["index", whole],
    path: ["path", text],
    before: ["before", nullable(text)],
    after: ["after", nullable(text)],
  },
};

/** As JSON: no two triples give one text. */
function intentKey(session: string, callId: string, index: number): Key {
  return { _id: JSON.stringify([session, callId, index]) };
}

export function journalStore(intents: Documents<WriteIntent>): JournalStore {
  return {
    insert: (intent) => intents.insert(intent),
    get: (session, callId, index) => intents.get(intentKey(session, callId, index)),

    // The indexes of a call are dense from 0.
    ofCall: (session, callId) => intents.dense((n) => intentKey(session, callId, n), Number.POSITIVE_INFINITY),
  };
}
