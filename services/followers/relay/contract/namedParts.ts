import { isDeepStrictEqual } from 'node:util';
import type { JsonSchema } from '../../../../shared/publicEvents/evolution.ts';

/**
 * The schema with each part that has a title replaced by a reference: `place` and the title. The
 * parts go into `named` by their titles. Generators name the types that they write by these names,
 * and write each once. Errors: an Error for a title that stands for two different parts.
 */
export function withNamedParts(
  schema: JsonSchema,
  place: string,
  named: Record<string, JsonSchema>,
): JsonSchema {
  const part = (inner: JsonSchema): JsonSchema => {
    const whole = withNamedParts(inner, place, named);
    const { title } = whole;
    if (typeof title !== 'string') return whole;
    if (named[title] && !isDeepStrictEqual(named[title], whole))
      throw new Error(`two different parts of the contract have the title ${title}`);
    named[title] = whole;
    return { $ref: `${place}${title}` };
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
