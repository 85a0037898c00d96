import { Type } from '../../../shared/domain/jsonSchema.ts';

/**
 * The headers of every message: CloudEvents 1.0 in the binary mode of its Kafka protocol binding
 * (https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/kafka-protocol-binding.md).
 * All values are UTF-8 text. Like the data of a type, the set of headers changes only by additions.
 * A header that some messages lack is optional.
 */
export const MessageHeaders = Type.Object(
  {
    'content-type': Type.Literal('application/json'),
    ce_specversion: Type.Literal('1.0'),
    ce_id: Type.String({ description: 'The id of the recorded event, a UUID' }),
    ce_type: Type.String({ description: 'The versioned public type' }),
    ce_source: Type.String({ description: 'The service that recorded it' }),
    ce_subject: Type.String({ description: 'The agent id or session id, the same as the key' }),
    ce_time: Type.String({ description: 'When it was recorded: UTC, milliseconds, ISO 8601' }),
    ce_partitionkey: Type.String({ description: 'The same as the key (partitioning extension)' }),
    ce_accountid: Type.String({ description: 'The account that the agent or session belongs to' }),
    ce_streamrevision: Type.String({
      pattern: '^\\d+$',
      description: '0-based place among the events of its key, without gaps',
    }),
    ce_position: Type.String({
      description: 'Place in the log; opaque, but positions of one log compare as text',
    }),
    ce_correlationid: Type.String({ description: 'The request that led here: its `X-Request-Id`' }),
    ce_causationid: Type.String({
      description: 'The event that caused this one, or the request when none did',
    }),
    ce_traceparent: Type.String({
      pattern: '^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$',
      description: 'W3C trace context; the trace id is derived from the request id',
    }),
    ce_restored: Type.Optional(
      Type.String({
        description:
          'Only on what was missing here after the log was restored from a backup, and so comes late: the id of the log since then',
      }),
    ),
  },
  { title: 'MessageHeaders', description: 'The headers of every message' },
);
