import { Ajv, type Options } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { LIMITS } from '../../shared/limits.ts';
import { problemsOf } from '../../shared/lib/validation/validation.ts';
import { wasTooLong, withinTime } from './withinTime.ts';

/** What is wrong with arguments, as the rest of a sentence; undefined where they fit. */
export type CheckArguments = (args: unknown) => string | undefined;

const { checkMs, schemaBytes, schemaDepth, schemaMs } = LIMITS.mcp;

const OPTIONS: Options = {
  strict: false,
  validateFormats: false,
  validateSchema: false,
  logger: false,
  // What a schema refers to again and again is not written out again and again.
  inlineRefs: false,
};

/** What no event holds, as JSON writes it: NUL, and halves of surrogate pairs. */
const UNSTORABLE = /\\u(0000|d[89a-f])/i;

function depthOf(value: unknown, most: number): number {
  if (typeof value !== 'object' || value === null) return 0;
  if (most === 0) return 1;
  let deepest = 0;
  for (const part of Object.values(value)) deepest = Math.max(deepest, depthOf(part, most - 1));
  return deepest + 1;
}

/** As it is recorded and offered: JSON and nothing else. Errors: an Error that says why not. */
export function plainSchema(schema: object): Record<string, unknown> {
  if (depthOf(schema, schemaDepth) > schemaDepth) throw new Error('its schema is nested too deep');
  const json = JSON.stringify(schema);
  if (Buffer.byteLength(json) > schemaBytes)
    throw new Error(`its schema is longer than ${schemaBytes} bytes`);
  if (UNSTORABLE.test(json)) throw new Error('its schema holds what is no text');
  return JSON.parse(json) as Record<string, unknown>;
}

function compile({ $schema, ...schema }: Record<string, unknown>) {
  const dialect = typeof $schema === 'string' && /draft-0[3-7]/.test($schema) ? Ajv : Ajv2020;
  // One for each schema: what a stranger names by `$id` is known to its own schema only.
  const validate = new dialect(OPTIONS).compile(schema);
  if ('$async' in validate) throw new Error('its schema is asynchronous');
  return validate;
}

/**
 * A check of arguments by the schema of a stranger: nothing is loaded for it, and neither reading it
 * nor a check takes longer than it may. Errors: an Error that says why the schema is not taken.
 */
export function checkFor(schema: Record<string, unknown>): CheckArguments {
  let validate: ReturnType<typeof compile>;
  try {
    validate = withinTime(() => compile(schema), schemaMs);
  } catch (error) {
    throw new Error(
      wasTooLong(error) ? 'its schema takes too long to be read' : 'its schema can’t be used',
      { cause: error },
    );
  }
  return (args) => {
    if (typeof args !== 'object' || args === null || Array.isArray(args))
      return 'they must be a JSON object';
    try {
      if (withinTime(() => validate(args), checkMs)) return undefined;
    } catch (error) {
      return wasTooLong(error) ? 'they take too long to be checked' : 'they can’t be checked';
    }
    return problemsOf(validate.errors)
      .map(({ path, message }) => `${path.slice(1) || 'they'} ${message}`)
      .join('; ');
  };
}
