import { jsonLength } from '../../shared/lib/validation/jsonComplexity.ts';
import { LIMITS } from '../../shared/limits.ts';

/** Limits the values of a schema that refers to itself. */
const MOST_VALUES = 100;

interface Making {
  root: object;
  /** The value of each text, which is cut when few characters remain. */
  text: string;
  remainingValues: number;
  /** Characters of all texts. */
  remainingTextChars: number;
  /** Characters of names and constants, which can not be cut. */
  remainingSchemaChars: number;
}

/** The schema requires a longer answer than the model gives. */
export class AnswerTooLong extends Error {}

type Schema = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const numberOr = (value: unknown, otherwise: number): number =>
  typeof value === 'number' ? value : otherwise;

/** Resolves a reference such as `#/a/b`. */
const referred = (root: object, reference: string): unknown =>
  reference
    .split('/')
    .slice(1)
    .reduce<unknown>(
      (at, name) => (isObject(at) ? at[name.replaceAll('~1', '/').replaceAll('~0', '~')] : at),
      root,
    );

function takeText(making: Making, maxChars = Infinity): string {
  const { text, remainingTextChars } = making;
  const part = text.slice(0, Math.min(maxChars, remainingTextChars)).toWellFormed();
  making.remainingTextChars -= part.length;
  return part;
}

/** Throws AnswerTooLong. */
function takeSchemaChars(making: Making, chars: number): void {
  making.remainingSchemaChars -= chars;
  if (making.remainingSchemaChars < 0) throw new AnswerTooLong();
}

function takeConstant(making: Making, value: unknown): unknown {
  takeSchemaChars(making, jsonLength(value));
  return value;
}

function objectOf(schema: Schema, making: Making): object {
  const { properties, required, additionalProperties } = schema;
  const described = isObject(properties) ? properties : {};
  const names = new Set([
    ...Object.keys(described),
    ...(Array.isArray(required) ? (required as string[]) : []),
  ]);
  if (names.size === 0) return additionalProperties === false ? {} : { answer: takeText(making) };
  for (const name of names) takeSchemaChars(making, name.length);
  return Object.fromEntries([...names].map((name) => [name, valueOf(described[name], making)]));
}

function typeOf({ type, properties, items }: Schema): unknown {
  if (type !== undefined) return Array.isArray(type) ? (type as unknown[])[0] : type;
  if (items !== undefined) return 'array';
  return properties === undefined ? 'string' : 'object';
}

function valueOf(schema: unknown, making: Making): unknown {
  making.remainingValues -= 1;
  if (!isObject(schema) || making.remainingValues < 0) return takeText(making);
  if ('const' in schema) return takeConstant(making, schema['const']);
  for (const keyword of ['enum', 'anyOf', 'oneOf', 'allOf']) {
    const [first] = Array.isArray(schema[keyword]) ? (schema[keyword] as unknown[]) : [];
    if (first !== undefined)
      return keyword === 'enum' ? takeConstant(making, first) : valueOf(first, making);
  }
  const { $ref, minimum, exclusiveMinimum, minItems, maxLength } = schema;
  if (typeof $ref === 'string') return valueOf(referred(making.root, $ref), making);
  switch (typeOf(schema)) {
    case 'object':
      return objectOf(schema, making);
    case 'array': {
      const length = Math.min(numberOr(minItems, 0), Math.max(making.remainingValues, 0));
      return Array.from({ length }, () => valueOf(schema['items'], making));
    }
    case 'number':
    case 'integer':
      return numberOr(minimum, numberOr(exclusiveMinimum, -1) + 1);
    case 'boolean':
      return true;
    case 'null':
      return null;
    default:
      return takeText(making, numberOr(maxLength, Infinity));
  }
}

/**
 * Wraps a text in JSON that is valid for a schema, as far as its keywords are supported. Throws
 * AnswerTooLong.
 */
export function jsonForSchema(text: string, schema: object): string {
  const { answerChars } = LIMITS.offlineModel;
  const making: Making = {
    root: schema,
    text,
    remainingValues: MOST_VALUES,
    remainingTextChars: answerChars,
    remainingSchemaChars: answerChars,
  };
  const plain = ['type', 'properties', '$ref', 'enum', 'const', 'anyOf', 'oneOf', 'allOf'];
  const isPlain = plain.some((keyword) => keyword in schema);
  return JSON.stringify(isPlain ? valueOf(schema, making) : objectOf(schema as Schema, making));
}
