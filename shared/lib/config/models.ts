import { Type } from 'typebox';

/** Options of the available models and of calls to them. */
export const modelOptions = {
  OPENAI_API_KEY: Type.Optional(
    Type.String({
      description: 'Key of the provider `openai`; set alone, it offers a set of OpenAI models',
    }),
  ),
  OPENAI_BASE_URL: Type.Optional(
    Type.String({
      pattern: '^https?://[^\\s@]+$',
      description: 'Base URL of the provider `openai`, for any OpenAI-compatible server',
    }),
  ),
  MODELS_FILE: Type.Optional(
    Type.String({ description: 'JSON file with the providers and models to offer' }),
  ),
  MODEL_ATTEMPT_TIMEOUT_MS: Type.Integer({
    default: 60_000,
    minimum: 1,
    maximum: 3_600_000,
    description: 'Time limit of one attempt of a model call, to the last byte of the answer',
  }),
  MODEL_MAX_RETRIES: Type.Integer({
    default: 2,
    minimum: 0,
    maximum: 10,
    description:
      'Further attempts when the model server answers 429 or 5xx or drops the connection before it answers',
  }),
  MODEL_CIRCUIT_FAILURES: Type.Integer({
    default: 10,
    minimum: 1,
    maximum: 1_000_000,
    description:
      'Model calls in a row that fail, retries included, after which their provider is not asked for a while',
  }),
  MODEL_CIRCUIT_OPEN_MS: Type.Integer({
    default: 10_000,
    minimum: 1,
    maximum: 3_600_000,
    description: 'For how long; then one call is let through, and decides',
  }),
};
