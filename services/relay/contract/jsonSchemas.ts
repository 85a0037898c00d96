import type { JsonSchema } from '../../../shared/publicEvents/evolution.ts';
import { publicEventSchemas } from '../../../shared/publicEvents/publicEvent.ts';

/** The JSON Schema of the data of every public event type, by type. */
export const jsonSchemas = (): Record<string, JsonSchema> =>
  Object.fromEntries(
    publicEventSchemas.map(({ type, data }) => [
      type,
      {
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        title: type,
        ...(JSON.parse(JSON.stringify(data)) as JsonSchema),
      },
    ]),
  );
