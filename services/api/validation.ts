import type { TSchema } from 'typebox';
import { TurnlogError, type ErrorDetail } from '../../shared/errors.ts';
import { LIMITS } from '../../shared/limits.ts';
import { lazyValidator, problemsOf, type Problem, type Words } from '../../shared/validation.ts';

type Place = 'body' | 'query';

/**
 * A check that lets valid input through (query parameters converted to their types, defaults filled
 * in) and throws `invalid_request` with every problem named by its field. Compiled at the first
 * use.
 */
export function validator(place: Place, schema: TSchema): (input: unknown) => unknown {
  const compiled = lazyValidator(schema, place === 'body' ? 'as_is' : 'from_text');
  const words = wordsFor(schema);
  return (input) => {
    const validate = compiled();
    if (validate(input)) return input;
    throw invalidRequest(place, problemsOf(validate.errors?.slice(0, LIMITS.http.details), words));
  };
}

function invalidRequest(place: Place, problems: readonly Problem[]): TurnlogError {
  const details: Record<string, ErrorDetail> = Object.create(null) as Record<string, ErrorDetail>;
  for (const { path, message } of problems) {
    const field = path.slice(1) || place;
    details[field] ??= {
      message: `${JSON.stringify(field.slice(0, 100))} ${message}.`,
      path: place === 'body' ? path : `query${path}`,
    };
  }
  const sentences = Object.values(details)
    .slice(0, 3)
    .map(({ message }) => message);
  return new TurnlogError(
    'invalid_request',
    `The ${place === 'body' ? 'request body' : 'query'} is not valid: ${sentences.join(' ')}`,
    { details },
  );
}

/** Every text of the API that has a least length has the least length 1. */
const wordsFor = (schema: TSchema): Words => ({
  required: () => 'is required',
  additionalProperties: () => `is not a known field; known are ${knownFields(schema)}`,
  enum: ({ allowedValues }) => `must be one of ${(allowedValues as string[]).join(', ')}`,
  minLength: () => 'must not be empty',
});

const knownFields = (schema: TSchema): string =>
  Object.keys((schema as { properties?: object }).properties ?? {}).join(', ');
