/**
 * One collection of the in-memory store, as a replica set has it: the primary's documents, and what the majority has
 * where that differs. A read sees the majority's; a unique key sees the primary's, so a collision may name a document
 * that a fail-over then takes away (rule 3).
 */

/** Copies made here: frozen to the bottom, so they need no second copy. */
const copies = new WeakSet<object>();

/** A deep, frozen copy without undefined fields: neither side can change the other's, and copies may be shared. */
export function frozenCopy<T>(value: T): T {
  if (typeof value !== "object" || value === null || copies.has(value)) return value;
  const copy = Object.freeze(Array.isArray(value) ? value.map(frozenCopy) : copyFields(value));
  copies.add(copy);
  return copy as T;
}

function copyFields(value: object): Record<string, unknown> {
  const copy: Record<string, unknown> = {};
  for (const [key, field] of Object.entries(value)) {
    if (field === undefined) continue;
    if (key === "__proto__") Object.defineProperty(copy, key, { value: frozenCopy(field), enumerable: true });
    else copy[key] = frozenCopy(field);
  }
  return copy;
}

export class MemoryTable<T> {
  readonly #primary = new Map<string, T>();
  readonly #second = new Map<string, string>();
  /** What the majority has of each document that was written since; undefined = it has none. */
  readonly #majority = new Map<string, T | undefined>();
  readonly #secondKey: ((document: T) => string) | undefined;

  /** `secondKey`: a second unique key, of fields that never change. */
  constructor(secondKey?: (document: T) => string) {
    this.#secondKey = secondKey;
  }

  /** The majority's document. */
  read(id: string): T | undefined {
    return this.#majority.has(id) ? this.#majority.get(id) : this.#primary.get(id);
  }

  /** The majority's document by the second unique key. */
  readSecond(key: string): T | undefined {
    const id = this.#second.get(key);
    return id === undefined ? undefined : this.read(id);
  }

  /** All documents that the majority has, oldest first. */
  all(): T[] {
    return [...this.#primary.keys()].map((id) => this.read(id)).filter((document) => document !== undefined);
  }

  /** The primary's document: what the guard of a write sees. */
  onPrimary(id: string): T | undefined {
    return this.#primary.get(id);
  }

  /** False where one of the unique keys is taken on the primary. */
  insert(id: string, document: T): boolean {
    const second = this.#secondKey?.(document);
    if (this.#primary.has(id) || (second !== undefined && this.#second.has(second))) return false;
    if (second !== undefined) this.#second.set(second, id);
    this.#put(id, frozenCopy(document));
    return true;
  }

  /** Changes fields where the guard holds on the primary; a field given as undefined is taken off. True if it did. */
  update(id: string, guard: (document: T) => boolean, change: (document: T) => { [K in keyof T]?: T[K] | undefined }): boolean {
    const before = this.#primary.get(id);
    if (before === undefined || !guard(before)) return false;
    this.#put(id, frozenCopy({ ...before, ...change(before) }));
    return true;
  }

  /** The majority has now what the primary has. */
  commit(): void {
    this.#majority.clear();
  }

  /** The primary loses what the majority had not. */
  rollback(): void {
    for (const [id, before] of this.#majority) {
      if (before === undefined) this.#drop(id);
      else this.#primary.set(id, before);
    }
    this.#majority.clear();
  }

  #put(id: string, document: T): void {
    if (!this.#majority.has(id)) this.#majority.set(id, this.#primary.get(id));
    this.#primary.set(id, document);
  }

  #drop(id: string): void {
    const document = this.#primary.get(id);
    if (document !== undefined && this.#secondKey !== undefined) this.#second.delete(this.#secondKey(document));
    this.#primary.delete(id);
  }
}
