import { Type } from 'typebox';
import { sessionEventSchemas } from '../../../shared/domain/session/events.ts';
import { EventMetadata, type RecordedEvent } from '../../../shared/eventlog/event.ts';

/** `session.turn_started.v1` is SessionTurnStartedV1, here as in the contract of the relay. */
const titleOf = (type: string): string =>
  type
    .split(/[._]/)
    .map((word) => `${word.charAt(0).toUpperCase()}${word.slice(1)}`)
    .join('');

const recorded = sessionEventSchemas.map((schema) => {
  const { type, data } = schema.properties;
  const { description = '' } = schema as { description?: string };
  const title = titleOf(type.const);
  return Type.Object(
    {
      id: Type.String({ format: 'uuid' }),
      stream: Type.String({ description: 'The stream that it stands in: `session-` and the id' }),
      revision: Type.Integer({ minimum: 0, description: 'Its place in the stream, from 0' }),
      type,
      data: Type.Object(data.properties, { title: `${title}Data`, description }),
      metadata: EventMetadata,
    },
    { title, description: `\`${type.const}\`: ${description}` },
  );
});

/**
 * An event of a session as it was recorded. A service answers no type that its own document does
 * not list: one of a later release is `release_too_old`.
 */
const SessionEvent = Type.Unsafe<Omit<RecordedEvent, 'position'>>({
  title: 'SessionEvent',
  description:
    'An event of a session as it was recorded; `type` says which. ' +
    'A type only gets further optional fields. Later releases have further types: let a client skip those that it does not know.',
  type: 'object',
  oneOf: recorded,
  discriminator: {
    propertyName: 'type',
    mapping: Object.fromEntries(
      recorded.map((schema) => [
        schema.properties.type.const,
        `#/components/schemas/${titleOf(schema.properties.type.const)}`,
      ]),
    ),
  },
});

export const SessionEvents = Type.Array(SessionEvent);
