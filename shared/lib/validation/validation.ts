import {
  Ajv2020,
  str,
  type ErrorObject,
  type FuncKeywordDefinition,
  type ValidateFunction,
} from 'ajv/dist/2020.js';
import type { Static, TObject, TSchema } from 'typebox';
import { parseTime } from '../time/parseTime.ts';
import { isStrongKey } from '../../accounts/apiKey.ts';

/** Our own string keywords; in OpenAPI they are extensions. */
const KEYWORDS: FuncKeywordDefinition[] = [
  {
    keyword: 'x-text',
    type: 'string',
    validate: (_on: boolean, value: string) => value.isWellFormed() && !value.includes('\u0000'),
    error: { message: 'must be well-formed Unicode text without NUL characters' },
  },
  {
    keyword: 'x-time',
    type: 'string',
    validate: (_on: boolean, value: string) => parseTime(value) !== undefined,
    error: {
      message:
        'must be an existing time of RFC 3339, such as 2026-11-20T09:30:00Z or 2026-11-20T10:30:00+01:00, or an existing date, such as 2026-11-20',
    },
  },
  {
    keyword: 'x-max-bytes',
    type: 'string',
    validate: (limit: number, value: string) => Buffer.byteLength(value) <= limit,
    error: {
      message: ({ schemaCode }) => str`must not be longer than ${schemaCode} bytes of UTF-8`,
    },
  },
  {
    // Events are JSON, in which a character takes at most 6 bytes.
    keyword: 'x-max-json-bytes',
    type: 'string',
    validate: (limit: number, value: string) =>
      value.length * 6 + 2 <= limit || Buffer.byteLength(JSON.stringify(value)) <= limit,
    error: {
      message: ({ schemaCode }) =>
        str`must not be longer than ${schemaCode} bytes as JSON, where a line break, a quote or a backslash takes 2 and another control character 6`,
    },
  },
  {
    keyword: 'x-url',
    type: 'string',
    validate: (_on: boolean, value: string) => URL.canParse(value),
    error: { message: 'must be a URL' },
  },
  {
    keyword: 'x-strong-key',
    type: 'string',
    validate: (_on: boolean, value: string) => isStrongKey(value),
    error: {
      message:
        'must be hard to guess: 32 characters or more without repetition or sequence, as `openssl rand -hex 32` makes them (a weaker key that was issued before works on; leave this unset then)',
    },
  },
];

/** How input is read: unchanged, or with defaults filled in. */
type Reading = 'as_is' | 'with_defaults';

function createAjv(reading: Reading): Ajv2020 {
  const ajv = new Ajv2020({
    allErrors: true,
    strict: false,
    // Needed to report the `x-rule` of a pattern that does not match.
    verbose: true,
    // Formats only document; patterns are checked.
    validateFormats: false,
    // The schemas are our own: checking them against the meta-schema would take longer than compiling them.
    meta: false,
    validateSchema: false,
    useDefaults: reading === 'with_defaults',
    // A property that an object inherits is no part of an input.
    ownProperties: true,
  });
  for (const keyword of KEYWORDS) ajv.addKeyword(keyword);
  return ajv;
}

const compilers = new Map<Reading, Ajv2020>();

function compilerFor(reading: Reading): Ajv2020 {
  const ajv = compilers.get(reading) ?? createAjv(reading);
  compilers.set(reading, ajv);
  return ajv;
}

/**
 * Creates a validator that is compiled on first use, so that unused schemas cost nothing at start.
 */
export function lazyValidator<Schema extends TSchema>(
  schema: Schema,
  reading: Reading = 'as_is',
): () => ValidateFunction<Static<Schema>> {
  let validate: ValidateFunction<Static<Schema>> | undefined;
  return () => (validate ??= compilerFor(reading).compile<Static<Schema>>(schema));
}

const asIs = (text: string): unknown => text;
const READ: Readonly<Record<string, (text: string) => unknown>> = {
  integer: (text) => (/^(0|-?[1-9]\d*)$/.test(text) ? Number(text) : text),
  boolean: (text) => text === 'true' || (text === 'false' ? false : text),
};

/**
 * Converts textual input (a query, the environment) to the numbers and booleans that a schema requires
 * for. A number is decimal digits only, a boolean `true` or `false`; other text is unchanged and
 * fails validation. A single text is accepted for a list.
 */
export function convertText(
  { properties }: TObject,
  texts: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const read = (name: string, value: unknown): unknown => {
    const { type } = (Object.hasOwn(properties, name) ? properties[name] : {}) as { type?: string };
    if (type === 'array' && typeof value === 'string') return [value];
    return typeof value === 'string' ? (READ[type ?? ''] ?? asIs)(value) : value;
  };
  return Object.fromEntries(
    Object.entries(texts).map(([name, value]) => [name, read(name, value)]),
  );
}

/** One problem of an input. */
export interface Problem {
  /** JSON pointer of the field; empty for the whole input. */
  path: string;
  /** The rest of a sentence that begins with the field: `must be string`. */
  message: string;
}

/** Messages for the problems of some keywords, instead of the validator's. */
export type ProblemMessages = Readonly<
  Record<string, (params: ErrorObject['params'], schema: ErrorObject['parentSchema']) => string>
>;

/** Field names are cut in messages: one may be as long as a body. */
export const MAX_FIELD_NAME_CHARS = 100;

/**
 * The path of the missing or unknown field. The validator reports the object that should contain
 * it.
 */
function fieldIn({ instancePath, params }: ErrorObject): string {
  const field: unknown = params['missingProperty'] ?? params['additionalProperty'];
  return typeof field === 'string'
    ? `${instancePath}/${field.slice(0, MAX_FIELD_NAME_CHARS)}`
    : instancePath;
}

/** The problems that a validator found, in its order. */
export const problemsOf = (
  errors: readonly ErrorObject[] | null | undefined,
  messages: ProblemMessages = {},
): Problem[] =>
  (errors ?? []).map((error) => {
    const rule: unknown =
      error.keyword === 'pattern' && (error.parentSchema as Record<string, unknown>)['x-rule'];
    if (typeof rule === 'string') return { path: error.instancePath, message: rule };
    const own = messages[error.keyword];
    return own
      ? { path: fieldIn(error), message: own(error.params, error.parentSchema) }
      : { path: error.instancePath, message: error.message ?? 'is not valid' };
  });
