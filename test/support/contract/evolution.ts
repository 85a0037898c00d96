import { canonicalJson } from '../../../shared/eventlog/canonicalJson.ts';

/** The subset of JSON Schema that public events use. */
export interface DataSchema {
  properties?: Record<string, DataSchema>;
  required?: string[];
  items?: DataSchema;
  /** Named subschemas, referenced as `#/$defs/<name>`. */
  $defs?: Record<string, DataSchema>;
  [keyword: string]: unknown;
}

/** Keywords that do not restrict values. */
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

/** Replaces each `$ref` by the schema that it names: a name does not restrict values. */
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
 * Lists the changes in `after` that could break a consumer of `before`; empty when the change is
 * additive. New fields, optional fields that became required, and changed annotations are additive.
 * Every other change needs a new version name. Each line begins with the JSON pointer of the
 * changed value. Throws an Error for an unresolved `$ref`.
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
