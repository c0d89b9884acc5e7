/**
 * What Headfast itself says inside a user message stands in tags named `headfast:…`. Text that others wrote (people,
 * files, hosts, tools) can hold the same letters, so in it every `<` that would open or close such a tag gets a
 * backslash behind it: `<headfast:` becomes `<\headfast:`, `</headfast:` becomes `<\/headfast:`, and `<\headfast:`
 * becomes `<\\headfast:`. Taking one backslash away again gives the original, so nothing is lost.
 */
import type { User, UserBlock } from "../domain/messages.ts";

/** Stands where a provider refuses a block for being empty or blank: the bytes behind it are kept. */
export const blankMark = "<headfast:blank/>";

const ownTag = /<(?=[\s\\/]*headfast\s*:)/gi;

/** The text with every `headfast:` tag made harmless. Linear in the text's length. */
export function harmless(text: string): string {
  return text.replace(ownTag, "<\\");
}

/** Empty, or only what one provider or another counts as white space and refuses as a block. */
export function isBlank(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: Python's white space has four that JavaScript's has not
  return /^[\s\x1c-\x1f\x85]*$/.test(text);
}

/** The text, or where it is blank, the blank mark before it. */
export function notBlank(text: string): string {
  if (!isBlank(text)) return text;
  return text === "" ? blankMark : `${blankMark}\n${text}`;
}

/** One block of a user message as the text that the model reads. */
export function blockText(block: UserBlock): string {
  if (block.type === "input")
    return block.user === undefined ? notBlank(harmless(block.text)) : `${userTag(block.user)}\n${harmless(block.text)}`;
  return `<headfast:${block.type}>\n${harmless(block.text)}\n</headfast:${block.type}>`;
}

function userTag(user: User): string {
  const name = user.name === undefined ? "" : ` name=${attribute(user.name)}`;
  return `<headfast:user id=${attribute(user.id)}${name}/>`;
}

/** A JSON string: no quote, line end or tag of the value gets out of it. */
function attribute(value: string): string {
  return JSON.stringify(harmless(value).toWellFormed());
}

/** The text of an input block without the line that says who spoke. */
export function withoutUserTag(text: string): string {
  return text.replace(/^<headfast:user id="[^\n]*"\/>\n/, "");
}
