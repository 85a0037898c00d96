import type { AgentParameters, RecordedResponseFormat } from './parameters.ts';
import type { ChatResponseFormat } from '../sessions/turns/chat.ts';
import { TurnlogError } from '../lib/errors/turnlogError.ts';
import type { ModelInfo } from '../ports/chatModel.ts';
import type { SchemaChecker } from '../ports/schemaChecker.ts';
import type { AgentCatalogue } from './catalogue.ts';
import { refusedSchema } from './responseSchema.ts';

/** How a client says that a model is to be asked. */
export interface ParametersInput {
  temperature?: number;
  max_output_tokens?: number;
  response_format?: ChatResponseFormat;
}

/** The most tokens that an answer of the model can have. */
export const maxOutputTokens = ({ max_output_tokens, context_window }: ModelInfo): number =>
  max_output_tokens ?? context_window - 1;

function invalid(path: string, problem: string): TurnlogError {
  const message = `${JSON.stringify(path.slice(1))} ${problem}.`;
  return new TurnlogError('invalid_request', `The request body is not valid: ${message}`, {
    details: { [path.slice(1)]: { message, path } },
  });
}

/** As events hold it. */
function recorded(format: ChatResponseFormat): RecordedResponseFormat {
  if (format.type !== 'json_schema') return format;
  const { schema, ...others } = format.json_schema;
  return { ...format, json_schema: { ...others, schema: JSON.stringify(schema) } };
}

async function recordedFormat(
  schemas: SchemaChecker,
  format: ChatResponseFormat,
  accountId: string,
): Promise<RecordedResponseFormat> {
  const result = recorded(format);
  if (format.type !== 'json_schema') return result;
  const flaw =
    refusedSchema(format.json_schema.schema) ??
    (await schemas.flawOf(result.json_schema!.schema, accountId));
  if (flaw !== undefined) throw invalid('/response_format/json_schema/schema', flaw);
  return result;
}

/** One that is not known answers any. */
export function requireOutputTokens(
  { models }: Pick<AgentCatalogue, 'models'>,
  model: string,
  tokens: number | undefined,
): void {
  const known = models.find(model);
  const most = known ? maxOutputTokens(known) : Infinity;
  if (tokens !== undefined && tokens > most)
    throw invalid('/max_output_tokens', `must not be more than ${most}, which ${model} has`);
}

/** An agent's parameters as they are recorded; undefined where none is set. */
export async function toRecordedParameters(
  { schemas }: Pick<AgentCatalogue, 'schemas'>,
  { temperature, max_output_tokens, response_format }: ParametersInput,
  accountId: string,
): Promise<AgentParameters | undefined> {
  const format = response_format && (await recordedFormat(schemas, response_format, accountId));
  const parameters = {
    ...(temperature !== undefined && { temperature }),
    ...(max_output_tokens !== undefined && { max_output_tokens }),
    ...(format && { response_format: format }),
  };
  return Object.keys(parameters).length === 0 ? undefined : parameters;
}

/** The same, of an agent with this model. */
export async function requireSupportedParameters(
  catalogue: Pick<AgentCatalogue, 'models' | 'schemas'>,
  input: ParametersInput & { model: string },
  accountId: string,
): Promise<AgentParameters | undefined> {
  requireOutputTokens(catalogue, input.model, input.max_output_tokens);
  return toRecordedParameters(catalogue, input, accountId);
}
