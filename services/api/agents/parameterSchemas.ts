import { Type } from 'typebox';
import { LIMITS } from '../../../shared/limits.ts';

const strict = { additionalProperties: false };

const AnswerSchema = Type.Object(
  {
    name: Type.String({
      pattern: '^[A-Za-z0-9_-]{1,64}$',
      'x-rule': 'must be 1 to 64 letters, digits, underscores or hyphens',
      examples: ['answer'],
    }),
    schema: Type.Record(Type.String(), Type.Unknown(), {
      description: `A JSON Schema (2020-12) without external references, at most ${LIMITS.responseFormat.schemaBytes} bytes as JSON; formats are not checked`,
      examples: [{ type: 'object', properties: { sum: { type: 'number' } }, required: ['sum'] }],
    }),
    strict: Type.Optional(
      Type.Boolean({ description: 'For the provider: constrains the output of the model' }),
    ),
  },
  { ...strict, title: 'AnswerSchema', description: 'The JSON Schema that an answer must match' },
);

const SchemaFormat = Type.Object(
  { type: Type.Literal('json_schema'), json_schema: AnswerSchema },
  { ...strict, title: 'SchemaFormat', description: 'JSON that matches a schema' },
);
const PlainFormat = Type.Object(
  { type: Type.Enum(['text', 'json_object']) },
  { ...strict, title: 'PlainFormat', description: 'Text, or any JSON object' },
);

export const ResponseFormat = Type.Union([PlainFormat, SchemaFormat], {
  description:
    'The format of an answer; any other answer results in 502 `model_error`, and is in the transcript',
});

/** Parameters of model requests, in the body of an agent and in its configuration. */
export const parameterFields = {
  temperature: Type.Optional(
    Type.Number({
      minimum: 0,
      maximum: 2,
      description: 'Randomness of the output; the provider’s default when absent',
    }),
  ),
  max_output_tokens: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 2_147_483_647,
      'x-most-output-tokens': true,
      description: 'The most tokens of one answer, not more than the model has',
    }),
  ),
  response_format: Type.Optional(ResponseFormat),
};
export const Parameters = Type.Object(parameterFields);
