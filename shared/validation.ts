import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import type { Static, TSchema } from 'typebox';

const ajv = new Ajv2020({ allErrors: true, strict: false });

/** A validator that is compiled when it is first asked: start-up pays for no schema that is never used. */
export function lazyValidator<Schema extends TSchema>(
  schema: Schema,
): () => ValidateFunction<Static<Schema>> {
  let validate: ValidateFunction<Static<Schema>> | undefined;
  return () => (validate ??= ajv.compile<Static<Schema>>(schema));
}
