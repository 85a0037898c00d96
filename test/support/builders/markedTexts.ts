/** Fills every field that an event's schema declares as protected text, present or optional. */
import { eventSchemas, type DomainEvent } from '../../../shared/eventlog/eventTypes.ts';
import { isProtectedTextSchema } from '../../../shared/domain/schema.ts';

/** The part of a JSON Schema that this file reads. */
interface Schema {
  type?: string;
  const?: unknown;
  enum?: unknown[];
  anyOf?: Schema[];
  minimum?: number;
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
}

const SCHEMAS = new Map(
  eventSchemas.map(({ properties: { type, data } }) => [type.const as string, data as Schema]),
);

const holdsText = (schema: Schema): boolean =>
  isProtectedTextSchema(schema) ||
  (schema.items !== undefined && holdsText(schema.items)) ||
  Object.values(schema.properties ?? {}).some(holdsText);

/** The event types with a protected text in their schema. */
export const TYPES_WITH_TEXTS = [...SCHEMAS].flatMap(([type, schema]) =>
  holdsText(schema) ? [type as DomainEvent['type']] : [],
);

/** A value of a schema, for a member that an example lacks. */
function anyValue(schema: Schema): unknown {
  if ('const' in schema) return schema.const;
  if (schema.enum) return schema.enum[0];
  if (schema.anyOf) return anyValue(schema.anyOf[0]!);
  switch (schema.type) {
    case 'integer':
    case 'number':
      return schema.minimum ?? 0;
    case 'boolean':
      return false;
    case 'array':
      return [];
    case 'object':
      return Object.fromEntries(
        (schema.required ?? []).map((name) => [name, anyValue(schema.properties![name]!)]),
      );
    default:
      return 'x';
  }
}

/**
 * The example with a text of `textFor` in each protected field of the schema. Optional fields with
 * texts are added, and lists that may hold texts get an item.
 */
function filled(schema: Schema, example: unknown, path: string, textFor: TextFor): unknown {
  if (isProtectedTextSchema(schema)) return textFor(path);
  const value = example ?? anyValue(schema);
  if (!holdsText(schema)) return value;
  if (schema.items) {
    const items = (value as unknown[]).length > 0 ? (value as unknown[]) : [undefined];
    return items.map((item, at) => filled(schema.items!, item, `${path}/${at}`, textFor));
  }
  const members = value as Record<string, unknown>;
  const added = Object.entries(schema.properties ?? {}).flatMap(([name, member]) =>
    holdsText(member) || (schema.required?.includes(name) ?? false) || name in members
      ? [[name, filled(member, members[name], `${path}/${name}`, textFor)] as const]
      : [],
  );
  return { ...members, ...Object.fromEntries(added) };
}

/** Returns the text for a field: the event type and a JSON pointer. */
type TextFor = (field: string) => string;

/** The event with a text in every field that its schema declares as protected. */
export const withMarkedTexts = (event: DomainEvent, textFor: TextFor): DomainEvent =>
  ({
    type: event.type,
    data: filled(SCHEMAS.get(event.type)!, event.data, event.type, textFor),
  }) as DomainEvent;
