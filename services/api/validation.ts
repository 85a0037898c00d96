import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import type { TSchema } from 'typebox';
import { TurnlogError, type ErrorDetail } from '../../shared/errors.ts';

/** More problems than this are not listed: nobody reads them, and a hostile body can have a million. */
const MAX_DETAILS = 20;

const NUL_OR_LONE_SURROGATE = 'must be well-formed Unicode text without NUL characters';

function newAjv(options: { coerceTypes: boolean }): Ajv2020 {
  const ajv = new Ajv2020({
    allErrors: true,
    verbose: true,
    strict: false,
    useDefaults: true,
    ...options,
  });
  ajv.addKeyword({
    keyword: 'x-text',
    type: 'string',
    validate: (_on: boolean, value: string) => value.isWellFormed() && !value.includes('\u0000'),
  });
  ajv.addKeyword({
    keyword: 'x-max-bytes',
    type: 'string',
    validate: (limit: number, value: string) => Buffer.byteLength(value) <= limit,
  });
  return ajv;
}

const bodies = newAjv({ coerceTypes: false });
const queries = newAjv({ coerceTypes: true });

type Place = 'body' | 'query';

/**
 * A check that lets valid input through (query parameters converted to their types, defaults filled in) and throws
 * `invalid_request` with every problem named by its field. Compiled at the first use.
 */
export function validator(place: Place, schema: TSchema): (input: unknown) => unknown {
  let validate: ValidateFunction | undefined;
  return (input) => {
    validate ??= (place === 'body' ? bodies : queries).compile(schema);
    if (validate(input)) return input;
    throw invalidRequest(place, schema, validate.errors ?? []);
  };
}

function invalidRequest(
  place: Place,
  schema: TSchema,
  errors: readonly ErrorObject[],
): TurnlogError {
  const details: Record<string, ErrorDetail> = Object.create(null) as Record<string, ErrorDetail>;
  for (const error of errors.slice(0, MAX_DETAILS)) {
    const path = fieldPath(error);
    const field = path.slice(1) || place;
    details[field] ??= {
      message: `${JSON.stringify(field.slice(0, 100))} ${problem(error, schema)}.`,
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

/** The field that an error is about: for a missing or an unknown one, the field itself rather than its parent. */
function fieldPath({ instancePath, params }: ErrorObject): string {
  const field: unknown = params['missingProperty'] ?? params['additionalProperty'];
  return typeof field === 'string' ? `${instancePath}/${field.slice(0, 100)}` : instancePath;
}

function problem(
  { keyword, message, params, schema: limit }: ErrorObject,
  schema: TSchema,
): string {
  switch (keyword) {
    case 'required':
      return 'is required';
    case 'additionalProperties':
      return `is not a known field; known are ${Object.keys((schema as { properties?: object }).properties ?? {}).join(', ')}`;
    case 'x-text':
      return NUL_OR_LONE_SURROGATE;
    case 'x-max-bytes':
      return `must not be longer than ${limit as number} bytes of UTF-8`;
    case 'enum':
      return `must be one of ${(params['allowedValues'] as string[]).join(', ')}`;
    case 'minLength':
      return 'must not be empty';
    default:
      return message ?? 'is not valid';
  }
}
