import { isDeepStrictEqual } from 'node:util';
import type { JsonSchema } from '../../../../shared/publicEvents/evolution.ts';

/**
 * Replaces each part of the schema that has a title with a reference: the prefix and the title. Adds the
 * parts to `named` by their titles. Code generators use these names for types, and generate each once.
 * Throws for a title that stands for two different parts.
 */
export function withNamedParts(
  schema: JsonSchema,
  refPrefix: string,
  named: Record<string, JsonSchema>,
): JsonSchema {
  const part = (inner: JsonSchema): JsonSchema => {
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
