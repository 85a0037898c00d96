import { Type } from '../../../shared/domain/jsonSchema.ts';
import { CURSOR_PATTERN } from '../../../shared/feed/cursor.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { publicEventSchemas } from '../../../shared/publicEvents/publicEvent.ts';
import { CommonQuery } from '../openapi/commonSchemas.ts';

const TYPES = publicEventSchemas.map(({ type }) => type);
const oneType = `(${TYPES.join('|').replaceAll('.', '\\.')})`;

const CURSOR = {
  pattern: CURSOR_PATTERN,
  'x-rule': 'must be the cursor of an event, such as 0000000000000042.kQ3xv9Yb2mPq7LzTn4Rw6sHd',
  examples: ['0000000000000042.kQ3xv9Yb2mPq7LzTn4Rw6sHd'],
};

export const EventsQuery = Type.Object(
  {
    ...CommonQuery.properties,
    format: Type.Optional(
      Type.Enum(['sse', 'jsonl'], {
        default: 'sse',
        description:
          '`sse`: a stream of server-sent events that does not end; `jsonl`: a page, one event per line',
      }),
    ),
    event: Type.Optional(
      Type.Enum(['type', 'message'], {
        default: 'type',
        description:
          'The field `event` of a server-sent event: the type of the event, or `message`, so that `onmessage` of an `EventSource` gets all events',
      }),
    ),
    from: Type.Optional(
      Type.Enum(['start', 'now'], {
        default: 'start',
        description:
          'Where to start without `after` and `Last-Event-ID`: at the first event, or with new events',
      }),
    ),
    after: Type.Optional(
      Type.String({
        ...CURSOR,
        description:
          'Continues after the event with this `cursor`; `Last-Event-ID` takes precedence',
      }),
    ),
    types: Type.Optional(
      Type.String({
        pattern: `^${oneType}(,${oneType})*$`,
        maxLength: 2_000,
        'x-rule': `must be types of events, separated by commas: ${TYPES.join(', ')}`,
        examples: ['turnlog.session.turn_completed.v1,turnlog.session.turn_failed.v1'],
        description: 'Only events of these types, separated by commas',
      }),
    ),
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: LIMITS.http.pageEntries,
        default: 100,
        description: 'The most events of a page (`format=jsonl`)',
      }),
    ),
    wait: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: LIMITS.feed.waitSeconds,
        default: 0,
        description:
          'How many seconds a page waits for its first event where there is none yet (`format=jsonl`)',
      }),
    ),
  },
  { additionalProperties: false },
);

export const LastEventId = Type.String({
  ...CURSOR,
  description: 'The id of the last event that the client received; browsers send it automatically',
});

export const FeedText = Type.String({
  description:
    'Events as CloudEvents 1.0 in JSON, with the extension attribute `cursor` in addition to those of the messages in Kafka; the contract of the relay describes their data',
});
