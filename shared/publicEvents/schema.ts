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
 * only ever grows (services/relay/README.md, "How events evolve"). An object inside the data has a `title`,
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

/** The data of a public event type. */
export type DataOf<Schema extends { data: ReturnType<typeof Type.Object> }> = Static<
  Schema['data']
>;
