/** What a command says: one JSON value on stdout with `--json`, else text for people; remarks go to stderr. */
import { createColors } from "picocolors";
import type { Io } from "./io.ts";
import { redacted } from "./redact.ts";

type Colors = ReturnType<typeof createColors>;

export class Output {
  readonly json: boolean;
  /** For what goes to stdout; plain where that is no terminal. */
  readonly colors: Colors;
  readonly #io: Io;

  constructor(io: Io, json: boolean) {
    this.#io = io;
    this.json = json;
    this.colors = createColors(!json && io.stdout.isTTY === true && io.env.NO_COLOR === undefined);
  }

  /** The answer: the value with snake_case keys, or the text. */
  answer(value: unknown, text: () => string): void {
    this.raw(`${this.json ? JSON.stringify(snake(value)) : text()}\n`);
  }

  /** Text as it is, on stdout. */
  raw(text: string): void {
    this.#io.stdout.write(text);
  }

  /** A remark for people, on stderr; nothing with `--json`. */
  remark(text: string): void {
    if (!this.json) this.#io.stderr.write(`${redacted(text)}\n`);
  }
}

/** The same value with the keys of its plain objects in snake_case. */
export function snake(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(snake);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [snakeKey(key), snake(field)]));
}

function snakeKey(key: string): string {
  return key.replace(/[A-Z]/gu, (letter) => `_${letter.toLowerCase()}`);
}

/** Controls that could move a terminal's cursor or hide text; a newline and a tab stay in text of several lines. */
const controls = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Foreign text on one line, harmless to a terminal. */
export function shown(text: string): string {
  return text.replace(controls, escaped);
}

/** Foreign text with its lines, harmless to a terminal. */
export function shownLines(text: string): string {
  return text.replace(controls, (character) =>
    character === "\n" || character === "\t" || character === "\u200d" ? character : escaped(character),
  );
}

function escaped(character: string): string {
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}

/** A label and foreign text of any number of lines: those behind the first stand indented, so that none passes for ours. */
export function shownIndented(label: string, text: string, indent = "  "): string {
  return `${label}${shownLines(text).replaceAll("\n", `\n${indent}`)}`;
}

/** A cell longer than this would tear every row apart; `--json` has it whole. */
const cellMax = 80;

function fitting(cell: string): string {
  return cell.length <= cellMax ? cell : `${[...cell].slice(0, cellMax - 1).join("")}…`;
}

/** Columns of one-line cells, aligned, with a heading. */
export function table(heading: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [heading, ...rows.map((row) => row.map((cell) => fitting(shown(cell))))];
  const widths = heading.map((_, column) => Math.max(...all.map((row) => (row[column] ?? "").length)));
  return all
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

/** `name  value` lines, aligned. */
export function fields(pairs: readonly (readonly [string, unknown])[]): string {
  const width = Math.max(...pairs.map(([name]) => name.length));
  return pairs
    .map(([name, value]) => `${name.padEnd(width)}  ${value === null || value === undefined ? "-" : shown(String(value))}`)
    .join("\n");
}
