import type { Static } from 'typebox';
import { Type } from '../../shared/domain/jsonSchema.ts';
import { LIMITS } from '../../shared/limits.ts';
import { lazyValidator, type ProblemMessages } from '../../shared/lib/validation/validation.ts';
import { readJsonFile, requireNoProblems, schemaProblems } from '../lib/optionFile.ts';

const strict = { additionalProperties: false };
const Id = Type.String({ minLength: 1, maxLength: 256 });
const Tokens = Type.Integer({ minimum: 1 });
/** Text, because parsing a JSON number may change its digits. */
const Decimal = Type.String({
  pattern: '^(0|[1-9]\\d{0,8})(\\.\\d{1,9})?$',
  'x-rule':
    'must be a decimal in quotes with 9 digits before and after its point at the most, as "2.50"',
});

const Price = Type.Object(
  {
    input_per_million: Decimal,
    output_per_million: Decimal,
    currency: Type.Optional(
      Type.String({ pattern: '^[A-Z]{3}$', 'x-rule': 'must be a code of ISO 4217, as "EUR"' }),
    ),
  },
  strict,
);

const ModelsFile = Type.Object(
  {
    providers: Type.Optional(
      Type.Record(
        Type.String(),
        Type.Object(
          {
            base_url: Type.String({ pattern: '^https?://[^\\s@]+$', 'x-url': true }),
            api_key_env: Type.Optional(Type.String({ minLength: 1 })),
            allow_plain_http: Type.Optional(Type.Boolean()),
            max_tokens_field: Type.Optional(Type.Enum(['max_completion_tokens', 'max_tokens'])),
            stream_options: Type.Optional(Type.Boolean()),
            response_format: Type.Optional(Type.Boolean()),
            system_role: Type.Optional(Type.Enum(['system', 'developer', 'user'])),
          },
          strict,
        ),
      ),
    ),
    models: Type.Array(
      Type.Object(
        {
          id: Id,
          provider: Id,
          upstream_model: Type.Optional(Id),
          context_window: Tokens,
          max_output_tokens: Type.Optional(Tokens),
          fallbacks: Type.Optional(Type.Array(Id, { maxItems: LIMITS.model.fallbacks })),
          price: Type.Optional(Price),
        },
        strict,
      ),
      { minItems: 1 },
    ),
  },
  strict,
);
export type ModelsFile = Static<typeof ModelsFile>;

const validator = lazyValidator(ModelsFile);

const WORDS: ProblemMessages = {
  pattern: () => 'must be an http or https URL without credentials',
  enum: ({ allowedValues }) => `must be one of: ${(allowedValues as string[]).join(', ')}`,
};

/**
 * Reads and validates MODELS_FILE. Throws `configuration_invalid`, which lists every problem with
 * its place in the file.
 */
export async function readModelsFile(file: string): Promise<ModelsFile> {
  const source = { option: 'MODELS_FILE', file };
  const content = await readJsonFile(source);
  requireNoProblems(source, schemaProblems(validator(), content, WORDS));
  return content as ModelsFile;
}
