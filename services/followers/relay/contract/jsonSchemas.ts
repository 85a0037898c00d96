import type { JsonSchema } from '../../../../shared/publicEvents/evolution.ts';
import { MessageHeaders } from '../../../../shared/publicEvents/headers.ts';
import { publicEventSchemas } from '../../../../shared/publicEvents/publicEvent.ts';
import { withNamedParts } from './namedParts.ts';

/** The name of the schema of the headers. */
export const HEADERS = 'headers';

/** A schema of the code as JSON. */
export const toJson = (schema: object): JsonSchema =>
  JSON.parse(JSON.stringify(schema)) as JsonSchema;

/** A self-contained schema. Its `$id` is a name, not an address, and never changes. */
function standalone(id: string, schema: object): JsonSchema {
  const $defs: Record<string, JsonSchema> = {};
  const whole = withNamedParts(toJson(schema), '#/$defs/', $defs);
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: `urn:turnlog:${id}`,
    ...whole,
    ...(Object.keys($defs).length > 0 && { $defs }),
  };
}

/** The JSON Schemas of the contract: the data of every public event type, and the headers. */
export const jsonSchemas = (): Record<string, JsonSchema> => ({
  [HEADERS]: standalone('headers:v1', MessageHeaders),
  ...Object.fromEntries(
    publicEventSchemas.map(({ type, data }) => [type, standalone(`event:${type}`, data)]),
  ),
});
