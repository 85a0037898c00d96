import type { AgentParameters, RecordedResponseFormat } from './parameters.ts';
import type { ChatResponseFormat } from '../sessions/turns/chat.ts';
import { TurnlogError } from '../lib/errors/turnlogError.ts';
import type { ModelInfo } from '../ports/chatModel.ts';
import type { AgentCatalogue } from './catalogue.ts';
import { LIMITS } from '../limits.ts';

/** Whether a reference stays within its schema. */
const isOwn = (reference: unknown): boolean =>
  typeof reference !== 'string' || reference.startsWith('#');

/**
 * Why a client's JSON Schema is rejected before it is compiled, as the rest of a sentence: too
 * large or too deep, external references, or `$async`.
 */
export function refusedSchema(schema: object): string | undefined {
  const { schemaBytes, schemaDepth } = LIMITS.responseFormat;
  const pending: { value: object; depth: number }[] = [{ value: schema, depth: 1 }];
  for (let next = pending.pop(); next; next = pending.pop()) {
    const { value, depth } = next;
    if (depth > schemaDepth) return `must not be nested more than ${schemaDepth} times`;
    const { $ref, $dynamicRef, $async } = value as Record<string, unknown>;
    if (!isOwn($ref) || !isOwn($dynamicRef)) return 'must refer to places in itself only: #…';
    if ($async !== undefined) return 'must not have $async';
    for (const member of Object.values(value) as unknown[])
      if (typeof member === 'object' && member !== null)
        pending.push({ value: member, depth: depth + 1 });
  }
  return Buffer.byteLength(JSON.stringify(schema)) > schemaBytes
    ? `must not be longer than ${schemaBytes} bytes as JSON`
    : undefined;
}

/** Model parameters as a client sends them. */
export interface ParametersInput {
  temperature?: number;
  max_output_tokens?: number;
  response_format?: ChatResponseFormat;
}

/** The largest answer of the model, in tokens. */
const maxOutputTokens = ({ max_output_tokens, context_window }: ModelInfo): number =>
  max_output_tokens ?? context_window - 1;

function invalid(path: string, problem: string): TurnlogError {
  const message = `${JSON.stringify(path.slice(1))} ${problem}.`;
  return new TurnlogError('invalid_request', `The request body is not valid: ${message}`, {
    details: { [path.slice(1)]: { message, path } },
  });
}

const SCHEMA_PATH = '/response_format/json_schema/schema';

/** Throws `invalid_request` for a schema that is rejected before it is compiled. */
export function requireCompilable(schema: object): void {
  const flaw = refusedSchema(schema);
  if (flaw !== undefined) throw invalid(SCHEMA_PATH, flaw);
}

/** A format as events hold it. Throws `invalid_request` for a schema that is rejected before it is compiled. */
export function toRecordedFormat(format: ChatResponseFormat): RecordedResponseFormat {
  if (format.type !== 'json_schema') return format;
  const { schema, ...others } = format.json_schema;
  // First: writing a schema that is nested too deep as JSON would overflow the stack.
  requireCompilable(schema);
  return { ...format, json_schema: { ...others, schema: JSON.stringify(schema) } };
}

/**
 * Throws `invalid_request` for a format whose schema can't be compiled. It takes the recorded format,
 * because a parsed schema would take much more memory while it waits for earlier checks.
 */
export async function requireUsableFormat(
  { schemas }: Pick<AgentCatalogue, 'schemas'>,
  { json_schema }: RecordedResponseFormat,
  accountId: string,
): Promise<void> {
  const flaw = json_schema && (await schemas.flawOf(json_schema.schema, accountId));
  if (flaw !== undefined) throw invalid(SCHEMA_PATH, flaw);
}

/** Checks the output limit; an unknown model accepts any. */
export function requireOutputTokens(
  { models }: Pick<AgentCatalogue, 'models'>,
  model: string,
  tokens: number | undefined,
): void {
  const info = models.find(model);
  const limit = info ? maxOutputTokens(info) : Infinity;
  if (tokens !== undefined && tokens > limit)
    throw invalid('/max_output_tokens', `must not be more than ${limit}, which ${model} has`);
}

/** An agent's parameters as recorded; undefined if none is set. */
async function toRecordedParameters(
  catalogue: Pick<AgentCatalogue, 'schemas'>,
  { temperature, max_output_tokens, response_format }: ParametersInput,
  accountId: string,
): Promise<AgentParameters | undefined> {
  const format = response_format && toRecordedFormat(response_format);
  if (format) await requireUsableFormat(catalogue, format, accountId);
  const parameters = {
    ...(temperature !== undefined && { temperature }),
    ...(max_output_tokens !== undefined && { max_output_tokens }),
    ...(format && { response_format: format }),
  };
  return Object.keys(parameters).length === 0 ? undefined : parameters;
}

/** The same, checked against the agent's model. */
export async function requireSupportedParameters(
  catalogue: Pick<AgentCatalogue, 'models' | 'schemas'>,
  input: ParametersInput & { model: string },
  accountId: string,
): Promise<AgentParameters | undefined> {
  requireOutputTokens(catalogue, input.model, input.max_output_tokens);
  return toRecordedParameters(catalogue, input, accountId);
}
