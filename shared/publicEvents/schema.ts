import { Type, type Static, type TProperties } from 'typebox';

/** What a public event is about, which decides the topic that it is published to. */
export type Channel = 'agents' | 'sessions';

/**
 * The public schema of one event type. `type` is the versioned public name: what a name stands for
 * only ever grows (services/relay/README.md, "How events evolve").
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
  data: Type.Object(data, { description }),
});

/** The data of a public event type. */
export type DataOf<Schema extends { data: ReturnType<typeof Type.Object> }> = Static<
  Schema['data']
>;
