import type { Static } from 'typebox';
import { Type } from '../domain/jsonSchema.ts';
import { ProtectedTextSchema } from '../domain/schema.ts';

const RESPONSE_FORMATS = ['text', 'json_object', 'json_schema'] as const;

/** The required format of answers, as events hold it. */
export const RecordedResponseFormat = Type.Object(
  {
    type: Type.Enum(RESPONSE_FORMATS),
    json_schema: Type.Optional(
      Type.Object(
        {
          name: ProtectedTextSchema(),
          schema: ProtectedTextSchema({ description: 'The JSON Schema, as JSON text' }),
          strict: Type.Optional(Type.Boolean()),
        },
        {
          title: 'RecordedAnswerSchema',
          description: 'The JSON Schema of the answer; with `json_schema`',
        },
      ),
    ),
  },
  { title: 'RecordedResponseFormat', description: 'What an answer has to be' },
);
export type RecordedResponseFormat = Static<typeof RecordedResponseFormat>;

/** The model parameters that an agent sets. */
export const AgentParameters = Type.Object(
  {
    temperature: Type.Optional(Type.Number({ minimum: 0, maximum: 2 })),
    max_output_tokens: Type.Optional(Type.Integer({ minimum: 1 })),
    response_format: Type.Optional(RecordedResponseFormat),
  },
  { title: 'AgentParameters', description: 'How a model is asked' },
);
export type AgentParameters = Static<typeof AgentParameters>;
