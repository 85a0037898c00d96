import { canonicalJson } from '../eventlog/canonicalJson.ts';

/** As much of a JSON Schema as the public events use. */
export interface JsonSchema {
  properties?: Record<string, JsonSchema>;
  required?: string[];
  items?: JsonSchema;
  [keyword: string]: unknown;
}

/** What says nothing about which values fit. */
const REMARKS = new Set([
  'title',
  'description',
  'examples',
  '$id',
  '$schema',
  '$comment',
  'deprecated',
]);

const constraintsOf = (schema: JsonSchema): string =>
  canonicalJson(
    Object.fromEntries(
      Object.entries(schema).filter(
        ([keyword]) =>
          !REMARKS.has(keyword) && !['properties', 'required', 'items'].includes(keyword),
      ),
    ),
  );

/**
 * What in `after` would surprise a consumer that was written against `before`; empty when the
 * change is additive. Additive is: a new field, a field that is now always there, other remarks.
 * Everything else needs a new version name. Each line begins with the JSON pointer of the value
 * that changed.
 */
export function breakingChanges(before: JsonSchema, after: JsonSchema, pointer = ''): string[] {
  const changes =
    constraintsOf(before) === constraintsOf(after)
      ? []
      : [`${pointer || '/'} allows other values than before`];
  for (const [name, schema] of Object.entries(before.properties ?? {})) {
    const now = after.properties?.[name];
    if (!now) changes.push(`${pointer}/${name} is gone`);
    else if (before.required?.includes(name) && !after.required?.includes(name))
      changes.push(`${pointer}/${name} may be missing now`);
    if (now) changes.push(...breakingChanges(schema, now, `${pointer}/${name}`));
  }
  if (before.items && after.items)
    changes.push(...breakingChanges(before.items, after.items, `${pointer}/*`));
  else if (before.items ?? after.items) changes.push(`${pointer}/* allows other items than before`);
  return changes;
}
