/** JSON text that every strict reader takes: no lone surrogate, neither raw nor as an escape, in values and in keys. */
import { limits } from "../domain/limits.ts";

/** A string as JSON text; a lone surrogate becomes U+FFFD. */
export function jsonString(text: string): string {
  return JSON.stringify(text.toWellFormed());
}

/** Any JSON value as text, keys in the order they have. */
export function jsonValue(value: unknown): string {
  return JSON.stringify(wellFormed(value));
}

/**
 * The text of a JSON object as a model sent it: verbatim where a strict reader takes it, so that a replay never
 * differs from the first time; rewritten where it escapes surrogates; `{}` where it is no JSON object or nests deeper
 * than `limits.toolArgumentsDepthMax`. The raw text stays in the message's neutral form.
 */
export function jsonObjectText(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null || Array.isArray(value) || depthOf(text) > limits.toolArgumentsDepthMax) return "{}";
    const plain = text.isWellFormed() && !/\\ud[89a-f]/i.test(text);
    return plain ? text : jsonValue(value);
  } catch {
    return "{}";
  }
}

/** How deeply valid JSON text nests. */
function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  let quoted = false;
  for (let i = 0; i < text.length; i += 1) {
    const char = text[i];
    if (quoted && char === "\\") i += 1;
    else if (char === '"') quoted = !quoted;
    else if (!quoted && (char === "{" || char === "[")) deepest = Math.max(deepest, ++depth);
    else if (!quoted && (char === "}" || char === "]")) depth -= 1;
  }
  return deepest;
}

function wellFormed(value: unknown): unknown {
  if (typeof value === "string") return value.toWellFormed();
  if (Array.isArray(value)) return value.map(wellFormed);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key.toWellFormed(), wellFormed(item)]));
}
