import { isDeepStrictEqual } from 'node:util';

/** As much of a JSON Schema as the API's schemas use. */
export interface JsonSchema {
  title?: string;
  type?: string;
  properties?: Record<string, JsonSchema>;
  patternProperties?: Record<string, JsonSchema>;
  propertyNames?: JsonSchema;
  items?: JsonSchema;
  anyOf?: JsonSchema[];
  oneOf?: JsonSchema[];
  [keyword: string]: unknown;
}

/** What a request may name, by the list that it is on, as the running process has it. */
export type OfferedNames = Readonly<
  Record<'models' | 'tools' | 'components', readonly string[]> & {
    /** The most tokens that a model on offer answers. */
    output_tokens: number;
  }
>;

/** Where the named schemas of the document are collected. */
export interface SchemaCollection {
  offers: OfferedNames;
  schemas: Record<string, JsonSchema>;
}

/** One of a group's tools, whose names a server may change while the process runs. */
const GROUP_TOOL_SUFFIX = '(?:/[^,\\s]{1,128})?';

/** One name, or several with commas between them. */
function namesPattern(offered: readonly string[]): string {
  const names = offered
    .filter((name) => !name.includes('/'))
    .map((name) => name + (name.includes(':') ? GROUP_TOOL_SUFFIX : ''));
  const one = `(?:${names.join('|')})`;
  return `^${one}(?:,${one})*$`;
}

const ANY_NAME = '^.*$';
/** No NUL. That text is well-formed is what JSON asks for anyway (RFC 8259 §8.1). */
const TEXT = '^[^\\u0000]*$';

/**
 * The keywords of ours said in standard ones, as far as those can: bytes are at least as many as
 * characters.
 */
function toStandardKeywords(schema: JsonSchema, offers: OfferedNames): JsonSchema {
  const {
    'x-text': isText,
    'x-rule': _rule,
    'x-offered': list,
    'x-most-output-tokens': ofModels,
    'x-max-bytes': bytes,
    ...rest
  } = schema;
  const offered = list === undefined ? [] : offers[list as 'models' | 'tools' | 'components'];
  return {
    ...(rest['enum'] !== undefined && { type: 'string' }),
    ...rest,
    ...(ofModels === true && { maximum: offers.output_tokens }),
    ...(typeof bytes === 'number' && { maxLength: bytes, 'x-max-bytes': bytes }),
    ...(isText === true && rest['pattern'] === undefined && { pattern: TEXT }),
    ...(offered.length > 0 && {
      ...(list === 'tools' ? { pattern: namesPattern(offered) } : { enum: offered }),
      examples: offered.slice(0, 1),
    }),
  };
}

const addSchemas = (
  schemas: Record<string, JsonSchema>,
  collection: SchemaCollection,
): Record<string, JsonSchema> =>
  Object.fromEntries(
    Object.entries(schemas).map(([name, part]) => [name, addSchema(part, collection)]),
  );

/**
 * A schema of the code as the document has it. One with a title is collected under it, and a
 * reference stands in its place: generators name their types by these titles, and write each once.
 * Errors: an Error for a title that stands for two different schemas.
 */
export function addSchema(schema: object, collection: SchemaCollection): JsonSchema {
  const { properties, patternProperties, propertyNames, items, anyOf, oneOf, ...rest } =
    toStandardKeywords(schema as JsonSchema, collection.offers);
  const whole: JsonSchema = {
    ...rest,
    ...(properties && { properties: addSchemas(properties, collection) }),
    ...(patternProperties && {
      additionalProperties: addSchema(patternProperties[ANY_NAME] ?? {}, collection),
    }),
    ...(propertyNames && { propertyNames: addSchema(propertyNames, collection) }),
    ...(items && { items: addSchema(items, collection) }),
    ...(anyOf && { anyOf: anyOf.map((part) => addSchema(part, collection)) }),
    ...(oneOf && { oneOf: oneOf.map((part) => addSchema(part, collection)) }),
  };
  const { title } = whole;
  if (title === undefined) return whole;
  const known = collection.schemas[title];
  if (known && !isDeepStrictEqual(known, whole))
    throw new Error(`two different schemas have the title ${title}`);
  collection.schemas[title] = whole;
  return { $ref: `#/components/schemas/${title}` };
}
