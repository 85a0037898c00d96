import type { TSchema } from 'typebox';
import { Type } from '../../../shared/domain/jsonSchema.ts';
import { isProtectedTextSchema } from '../../../shared/domain/schema.ts';
import { sessionEventSchemas } from '../../../shared/sessions/events.ts';
import { EventMetadata, type RecordedEvent } from '../../../shared/eventlog/event.ts';

/** `SessionTurnStartedV1` for `session.turn_started.v1`, as in the contract of the relay. */
const titleOf = (type: string): string =>
  type
    .split(/[._]/)
    .map((word) => `${word.charAt(0).toUpperCase()}${word.slice(1)}`)
    .join('');

const Commitment = Type.String({
  pattern: '^[0-9a-f]{64}$',
  description: 'SHA-256 in hex of the salt and the text in UTF-8; the hash of the event covers it',
});

const DisclosedText = Type.Object(
  {
    sha256: Commitment,
    salt: Type.String({ pattern: '^[A-Za-z0-9_-]{22}$', description: '16 bytes in base64url' }),
    text: Type.String(),
  },
  { title: 'DisclosedText', description: 'A text with what its commitment is checked with' },
);

const ErasedText = Type.Object(
  { sha256: Commitment, erased: Type.Literal(true) },
  { title: 'ErasedText', description: 'A text that was erased' },
);

/** A protected text in responses; one recorded before texts were protected is a plain string. */
const disclosedTextSchema = (description: string | undefined): TSchema =>
  Type.Union([DisclosedText, ErasedText, Type.String({ description: 'Recorded without a box' })], {
    ...(description !== undefined && { description }),
  });

interface Parts {
  properties?: Readonly<Record<string, TSchema>>;
  items?: TSchema;
  description?: string;
}

/** The schema of event data, with its protected texts as responses have them. */
function disclosedSchema(schema: TSchema): TSchema {
  const { properties, items, description } = schema as Parts;
  if (isProtectedTextSchema(schema)) return disclosedTextSchema(description);
  if (items) return { ...schema, items: disclosedSchema(items) };
  if (!properties) return schema;
  const parts = Object.entries(properties).map(([name, part]) => [name, disclosedSchema(part)]);
  return { ...schema, properties: Object.fromEntries(parts) as Record<string, TSchema> };
}

const recordedEventSchemas = sessionEventSchemas.map((schema) => {
  const { type, data } = schema.properties;
  const { description = '' } = schema as { description?: string };
  const title = titleOf(type.const);
  return Type.Object(
    {
      id: Type.String({ format: 'uuid' }),
      stream: Type.String({ description: 'The stream that it stands in: `session-` and the id' }),
      revision: Type.Integer({ minimum: 0, description: 'Its place in the stream, from 0' }),
      type,
      data: { ...disclosedSchema(data), title: `${title}Data`, description },
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
  oneOf: recordedEventSchemas,
  discriminator: {
    propertyName: 'type',
    mapping: Object.fromEntries(
      recordedEventSchemas.map((schema) => [
        schema.properties.type.const,
        `#/components/schemas/${titleOf(schema.properties.type.const)}`,
      ]),
    ),
  },
});

export const SessionEvents = Type.Array(SessionEvent);
