/** The locations of protected texts in the data of events, according to their schemas. */
import { eventSchemas } from '../eventTypes.ts';
import { isProtectedTextSchema } from '../../domain/schema.ts';

/** The protected texts of a value: it is one, or its items or members hold them. */
export type TextLocations =
  'text' | { items: TextLocations } | { members: ReadonlyMap<string, TextLocations> };

/** The part of a JSON Schema that determines where texts are. */
interface Schema {
  items?: Schema;
  properties?: Readonly<Record<string, Schema>>;
}

function locateTexts(schema: Schema): TextLocations | undefined {
  if (isProtectedTextSchema(schema)) return 'text';
  const items = schema.items && locateTexts(schema.items);
  if (items) return { items };
  const members = Object.entries(schema.properties ?? {}).flatMap(([name, member]) => {
    const texts = locateTexts(member);
    return texts ? [[name, texts] as const] : [];
  });
  return members.length > 0 ? { members: new Map(members) } : undefined;
}

/** By event type: where its data holds protected texts. */
export const TEXTS = new Map(
  eventSchemas.map(({ properties: { type, data } }) => [
    type.const as string,
    locateTexts(data as Schema),
  ]),
);

function countStrings(value: unknown, texts: TextLocations): number {
  if (texts === 'text') return typeof value === 'string' ? 1 : 0;
  if (typeof value !== 'object' || value === null) return 0;
  if (Array.isArray(value))
    return 'items' in texts
      ? value.reduce<number>((sum, item) => sum + countStrings(item, texts.items), 0)
      : 0;
  if (!('members' in texts)) return 0;
  let count = 0;
  for (const [name, below] of texts.members)
    count += countStrings((value as Record<string, unknown>)[name], below);
  return count;
}

/** The number of strings in the data of an event where its type has protected texts. */
export function countTexts({ type, data }: { type: string; data: unknown }): number {
  const texts = TEXTS.get(type);
  return texts ? countStrings(data, texts) : 0;
}
