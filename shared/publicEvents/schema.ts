import { Type, type Static, type TProperties } from 'typebox';

/** What a public event is about, which decides the topic that it is published to. */
export type Channel = 'agents' | 'sessions';

/** `turnlog.session.turn_started.v1` is SessionTurnStartedV1 in the code that generators write. */
const titleOf = (type: string): string =>
  type
    .split(/[._]/)
    .slice(1)
    .map((word) => `${word.charAt(0).toUpperCase()}${word.slice(1)}`)
    .join('');

/**
 * The public schema of one event type. `type` is the versioned public name: what a name stands for
 * only ever grows (services/followers/relay/README.md, "How events evolve"). An object inside the data has a `title`,
 * which generators name its type by.
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
 * What a type with texts has beside them. A text that was erased is published again as the empty
 * one, because a field that was promised stays.
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

/** The data of a public event type. */
export type DataOf<Schema extends { data: ReturnType<typeof Type.Object> }> = Static<
  Schema['data']
>;
