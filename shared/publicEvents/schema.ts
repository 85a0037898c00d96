import type { Static, TObject, TProperties } from 'typebox';
import { Type } from '../domain/jsonSchema.ts';

/** The subject of a public event, which determines its topic. */
export type Channel = 'agents' | 'sessions';

/** Generated code names `turnlog.session.turn_started.v1` SessionTurnStartedV1. */
const titleOf = (type: string): string =>
  type
    .split(/[._]/)
    .slice(1)
    .map((word) => `${word.charAt(0).toUpperCase()}${word.slice(1)}`)
    .join('');

/**
 * The public schema of one event type. `type` is the versioned public name. The schema of a name
 * changes only by additions (services/followers/relay/README.md, "How events evolve"). Code
 * generators name the type of an object inside the data by its `title`.
 */
export const publicSchema = <const Name extends string, Data extends TProperties>(
  type: Name,
  channel: Channel,
  data: Data,
  description: string,
) => ({
  type,
  channel,
  description,
  data: Type.Object(data, { title: titleOf(type), description }),
});

/**
 * Additional fields of a type with texts. Erased texts are republished as empty strings, because
 * documented fields must remain present.
 */
export const ERASED_TEXTS = {
  erased: Type.Optional(
    Type.Literal(true, { description: 'Only where its texts were erased, and are empty here' }),
  ),
  commitments: Type.Optional(
    Type.Unsafe<Record<string, string>>({
      type: 'object',
      additionalProperties: { type: 'string' },
      description:
        'Only with `erased`: by the JSON pointer of each text, the salted hash that stands for it in the log',
    }),
  ),
};

/** Type, channel and data of a public event. */
export type PublicContentOf<Schema extends { type: string; data: TObject }> = Schema extends unknown
  ? { type: Schema['type']; channel: Channel; data: Static<Schema['data']> }
  : never;

/** The content of a public event with this schema. */
export const publicContent = <Name extends string, Data extends TObject>(
  { type, channel }: { type: Name; channel: Channel; data: Data },
  data: Static<Data>,
) => ({ type, channel, data });

/** The named fields of an object that are set, in this order. */
export const pick = <Fields extends object, const Name extends keyof Fields>(
  fields: Fields,
  names: readonly Name[],
): Pick<Fields, Name> =>
  Object.fromEntries(
    names.flatMap((name) => (fields[name] === undefined ? [] : [[name, fields[name]]])),
  ) as Pick<Fields, Name>;
