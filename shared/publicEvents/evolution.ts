import { canonicalJson } from '../eventlog/canonicalJson.ts';

/** As much of a JSON Schema as the public events use. */
export interface DataSchema {
  properties?: Record<string, DataSchema>;
  required?: string[];
  items?: DataSchema;
  /** Named parts, by the name that `$ref` gives as `#/$defs/<name>`. */
  $defs?: Record<string, DataSchema>;
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

const constraintsOf = (schema: DataSchema): string =>
  canonicalJson(
    Object.fromEntries(
      Object.entries(schema).filter(
        ([keyword]) =>
          !REMARKS.has(keyword) && !['properties', 'required', 'items'].includes(keyword),
      ),
    ),
  );

const DEFS = '#/$defs/';

/** The schema with what each `$ref` names in its place: a name says nothing about which values fit. */
function inlined(schema: DataSchema, defs: Record<string, DataSchema>): DataSchema {
  const { $ref, $defs: _, properties, items, ...rest } = schema;
  const named = typeof $ref === 'string' ? defs[$ref.slice(DEFS.length)] : {};
  if (!named) throw new Error(`${String($ref)} leads nowhere`);
  return {
    ...($ref !== undefined && inlined(named, defs)),
    ...rest,
    ...(properties && {
      properties: Object.fromEntries(
        Object.entries(properties).map(([name, part]) => [name, inlined(part, defs)]),
      ),
    }),
    ...(items && { items: inlined(items, defs) }),
  };
}

/**
 * What in `after` would surprise a consumer that was written against `before`; empty when the
 * change is additive. Additive is: a new field, a field that is now always there, other remarks.
 * Everything else needs a new version name. Each line begins with the JSON pointer of the value
 * that changed. Errors: an Error for a `$ref` that leads nowhere.
 */
export const breakingChanges = (before: DataSchema, after: DataSchema): string[] =>
  changesBelow(inlined(before, before.$defs ?? {}), inlined(after, after.$defs ?? {}), '');

function changesBelow(before: DataSchema, after: DataSchema, pointer: string): string[] {
  const changes =
    constraintsOf(before) === constraintsOf(after)
      ? []
      : [`${pointer || '/'} allows other values than before`];
  for (const [name, schema] of Object.entries(before.properties ?? {})) {
    const now = after.properties?.[name];
    if (!now) changes.push(`${pointer}/${name} is gone`);
    else if (before.required?.includes(name) && !after.required?.includes(name))
      changes.push(`${pointer}/${name} may be missing now`);
    if (now) changes.push(...changesBelow(schema, now, `${pointer}/${name}`));
  }
  if (before.items && after.items)
    changes.push(...changesBelow(before.items, after.items, `${pointer}/*`));
  else if (before.items ?? after.items) changes.push(`${pointer}/* allows other items than before`);
  return changes;
}
