import { isDeepStrictEqual } from 'node:util';
import { TIME_PATTERN } from '../../../shared/lib/time/parseTime.ts';

/** The subset of JSON Schema that the API's schemas use. */
interface JsonSchema {
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

/** Names that the running process offers, as examples: another process may offer others. */
export type OfferedNames = Readonly<Record<'models' | 'tools', readonly string[]>>;

/** Collects the named schemas of the document. */
export interface SchemaCollection {
  offers: OfferedNames;
  schemas: Record<string, JsonSchema>;
}

const ANY_NAME = '^.*$';
/** No NUL. JSON text is well-formed Unicode in any case (RFC 8259 §8.1). */
const TEXT = '^[^\\u0000]*$';

/**
 * Replaces Turnlog's keywords by standard ones, as far as these can express them: `maxLength` counts
 * characters, which are at most as many as bytes.
 */
function toStandardKeywords(schema: JsonSchema, offers: OfferedNames): JsonSchema {
  const {
    'x-text': isText,
    'x-time': isTime,
    'x-rule': _rule,
    'x-null-is-absent': _isNullAbsent,
    'x-offered': list,
    'x-max-bytes': bytes,
    ...rest
  } = schema;
  const offered = list === undefined ? [] : offers[list as keyof OfferedNames];
  return {
    ...(rest['enum'] !== undefined && { type: 'string' }),
    ...rest,
    ...(typeof bytes === 'number' && { maxLength: bytes, 'x-max-bytes': bytes }),
    ...(isText === true && rest['pattern'] === undefined && { pattern: TEXT }),
    ...(isTime === true && { pattern: TIME_PATTERN }),
    ...(offered.length > 0 && { examples: offered.slice(0, 1) }),
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
 * Converts a schema for the document. A schema with a title is collected under it and replaced by a
 * reference, so that generators write each type once. Throws where two schemas share a title.
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
  const existing = collection.schemas[title];
  if (existing && !isDeepStrictEqual(existing, whole))
    throw new Error(`two different schemas have the title ${title}`);
  collection.schemas[title] = whole;
  return { $ref: `#/components/schemas/${title}` };
}
