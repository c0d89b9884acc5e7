/** A tool from a zod schema: what the model is told, and the check of what it sends. */
import { z } from "zod";
import { HeadfastError } from "../domain/errors.ts";
import { limits } from "../domain/limits.ts";
import type { Tool, ToolContext } from "../domain/ports.ts";
import { boundText } from "./bounded.ts";

/** What providers take as a tool's name. */
const namePattern = /^[a-zA-Z0-9_-]{1,64}$/;

export interface ToolDefinition<Schema extends z.ZodType> {
  /** Up to 64 letters, digits, `_` and `-`. */
  name: string;
  /** Told to the model: what the tool does, and when to use it. */
  description: string;
  /** An object schema. What it infers is what `run` gets. */
  input: Schema;
  /**
   * Answers the text for the model. A throw becomes an error result with its message. May run again after a crash, under
   * the same `context.callId`.
   */
  run(input: z.output<Schema>, context: ToolContext): string | Promise<string>;
}

/**
 * A tool for a bot's `tools`. Arguments that do not fit the schema are answered to the model with what is wrong; an
 * answer above `limits.toolResultBytesMax` is cut when it is told, with a note.
 * @throws {HeadfastError} `configuration` for a name that providers refuse, or a schema that is no JSON Schema of an object.
 */
export function defineTool<Schema extends z.ZodType>(definition: ToolDefinition<Schema>): Tool {
  const { name, description, input } = definition;
  if (typeof name !== "string" || !namePattern.test(name))
    throw misdefined(name, `its name must match ${namePattern.source}, since providers refuse others`);
  if (typeof description !== "string") throw misdefined(name, "it needs a description");
  const run = async (args: unknown, context: ToolContext): Promise<string> => {
    const parsed = await input.safeParseAsync(args);
    if (!parsed.success) throw failed(name, `the arguments do not fit: ${boundText(z.prettifyError(parsed.error), limits.errorBytesMax)}`);
    const answer: unknown = await definition.run(parsed.data, context);
    if (typeof answer !== "string")
      throw failed(name, `it answered with ${answer === null ? "null" : typeof answer} where text is expected`);
    return answer;
  };
  return { name, description, inputSchema: jsonSchema(name, input), run };
}

function jsonSchema(name: string, input: z.ZodType): Record<string, unknown> {
  const schema = convert(name, input);
  if (schema.type !== "object") throw misdefined(name, "its input must be an object schema, such as z.object({ … })");
  return schema;
}

function convert(name: string, input: z.ZodType): Record<string, unknown> {
  try {
    const { $schema: _, ...schema } = z.toJSONSchema(input, { io: "input" });
    return JSON.parse(JSON.stringify(schema)) as Record<string, unknown>;
  } catch (error) {
    throw misdefined(
      name,
      "its input cannot be written as a JSON Schema; it must be a schema of zod 4 without transforms of its input",
      error,
    );
  }
}

function misdefined(name: unknown, reason: string, cause?: unknown): HeadfastError {
  return new HeadfastError(
    "configuration",
    `the tool ${JSON.stringify(name)} cannot be defined: ${reason}`,
    cause === undefined ? {} : { cause },
  );
}

function failed(name: string, reason: string): HeadfastError {
  return new HeadfastError("tool_failed", `${name}: ${reason}`, { data: { tool: name } });
}
