/** `notes`: what hosts tell a session, with dense numbers, insert-only. `_id` is session and number. */
import { numberedId } from "../domain/ids.ts";
import type { NoteStore } from "../domain/ports.ts";
import type { Note } from "../domain/records.ts";
import type { Documents, Key, Shape } from "./documents.ts";
import { id, text, whole } from "./mapping.ts";

export const notesShape: Shape<Note> = {
  collection: "notes",
  keyOf: (note) => keyOf(note.session, note.number),
  fields: {
    v: ["v", whole],
    session: ["session", id("session")],
    number: ["number", whole],
    text: ["text", text],
    writer: ["writer", text],
    at: ["at", text],
  },
};

function keyOf(session: string, number: number): Key {
  return { _id: numberedId(session, number), session };
}

export function noteStore(notes: Documents<Note>): NoteStore {
  return {
    insert: (note) => notes.insert(note),
    get: (session, number) => notes.get(keyOf(session, number)),
  };
}
