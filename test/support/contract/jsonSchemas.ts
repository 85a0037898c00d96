import type { DataSchema } from './evolution.ts';
import { MessageHeaders } from './headers.ts';
import { publicEventSchemas } from '../../../shared/publicEvents/publicEvent.ts';
import { isDeepStrictEqual } from 'node:util';

/**
 * Replaces each part of the schema that has a title with a reference: the prefix and the title. Adds the
 * parts to `named` by their titles. Code generators use these names for types, and generate each once.
 * Throws for a title that stands for two different parts.
 */
export function withNamedParts(
  schema: DataSchema,
  refPrefix: string,
  named: Record<string, DataSchema>,
): DataSchema {
  const part = (inner: DataSchema): DataSchema => {
    const whole = withNamedParts(inner, refPrefix, named);
    const { title } = whole;
    if (typeof title !== 'string') return whole;
    if (named[title] && !isDeepStrictEqual(named[title], whole))
      throw new Error(`two different parts of the contract have the title ${title}`);
    named[title] = whole;
    return { $ref: `${refPrefix}${title}` };
  };
  const { properties, items } = schema;
  return {
    ...schema,
    ...(properties && {
      properties: Object.fromEntries(
        Object.entries(properties).map(([name, inner]) => [name, part(inner)]),
      ),
    }),
    ...(items && { items: part(items) }),
  };
}

/** The name of the schema of the headers. */
export const HEADERS = 'headers';

/** A schema of the code as JSON. */
export const toJson = (schema: object): DataSchema =>
  JSON.parse(JSON.stringify(schema)) as DataSchema;

/** A self-contained schema. Its `$id` is a name, not an address, and never changes. */
function standalone(id: string, schema: object): DataSchema {
  const $defs: Record<string, DataSchema> = {};
  const whole = withNamedParts(toJson(schema), '#/$defs/', $defs);
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: `urn:turnlog:${id}`,
    ...whole,
    ...(Object.keys($defs).length > 0 && { $defs }),
  };
}

/** The JSON Schemas of the contract: the data of every public event type, and the headers. */
export const jsonSchemas = (): Record<string, DataSchema> => ({
  [HEADERS]: standalone('headers:v1', MessageHeaders),
  ...Object.fromEntries(
    publicEventSchemas.map(({ type, data }) => [type, standalone(`event:${type}`, data)]),
  ),
});
