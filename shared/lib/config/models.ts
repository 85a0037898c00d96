import { Type } from '../../domain/jsonSchema.ts';

/** Options of the available models and of calls to them. */
export const modelOptions = {
  OPENAI_API_KEY: Type.Optional(
    Type.String({
      pattern: '^\\s*[!-~]+\\s*$',
      'x-rule': 'must be visible ASCII characters',
      description: 'API key of the provider `openai`; alone it offers a set of OpenAI models',
    }),
  ),
  OPENAI_BASE_URL: Type.Optional(
    Type.String({
      pattern: '^https?://[^\\s@]+$',
      'x-rule': 'must begin with http:// or https:// and have no user, password or space',
      'x-url': true,
      description: 'Base URL of the provider `openai`, for any OpenAI-compatible server',
    }),
  ),
  MODELS_FILE: Type.Optional(
    Type.String({ description: 'JSON file of the offered providers and models' }),
  ),
  MODEL_ATTEMPT_TIMEOUT_MS: Type.Integer({
    default: 60_000,
    minimum: 1,
    maximum: 3_600_000,
    description: 'Time limit of one attempt of a model call, to its last byte',
  }),
  MODEL_MAX_RETRIES: Type.Integer({
    default: 2,
    minimum: 0,
    maximum: 10,
    description: 'Further attempts after 429, 5xx, or a connection that breaks before the response',
  }),
  MODEL_CIRCUIT_FAILURES: Type.Integer({
    default: 10,
    minimum: 1,
    maximum: 1_000_000,
    description: 'Failed model calls in a row that open a circuit',
  }),
  MODEL_CIRCUIT_OPEN_MS: Type.Integer({
    default: 10_000,
    minimum: 1,
    maximum: 3_600_000,
    description: 'How long an open circuit rejects calls before one tests it',
  }),
};
