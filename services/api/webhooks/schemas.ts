import { Type } from '../../../shared/domain/jsonSchema.ts';
import { DISABLED_REASONS } from '../../../shared/webhooks/events.ts';
import { Instant } from '../../../shared/domain/schema.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { publicEventSchemas } from '../../../shared/publicEvents/publicEvent.ts';
import { WebhookId, textSchema, webhookPageQuery } from '../openapi/commonSchemas.ts';

const TYPES = publicEventSchemas.map(({ type }) => type);

const Url = textSchema({
  maxLength: LIMITS.webhooks.urlCharacters,
  description:
    'The endpoint: an `https://` URL without user, password and fragment. Its host must resolve, now and for each message, to public addresses; the operator’s option `WEBHOOKS_ALLOW_PRIVATE` allows private ones and `http://`',
  examples: ['https://example.com/turnlog'],
});
const Types = Type.Array(Type.Enum(TYPES), {
  minItems: 1,
  maxItems: TYPES.length,
  description: 'Only events of these types',
  examples: [['turnlog.session.turn_completed.v1']],
});

export const CreateWebhookBody = Type.Object(
  { url: Url, types: Type.Optional(Types) },
  {
    additionalProperties: false,
    title: 'CreateWebhookRequest',
    description: 'The endpoint and the types of events; without `types`, all',
  },
);

export const ChangeWebhookBody = Type.Object(
  {
    url: Type.Optional(Url),
    types: Type.Optional(Type.Union([Types, Type.Null()], { description: 'null: all types' })),
    enabled: Type.Optional(
      Type.Union([Type.Boolean(), Type.Null()], {
        description: '`true` or null continues after the last accepted message; `false` stops',
      }),
    ),
  },
  {
    additionalProperties: false,
    title: 'ChangeWebhookRequest',
    description: 'Changes of a webhook (RFC 7396); null resets a field to its default',
  },
);

const settings = {
  webhook_id: WebhookId,
  url: Type.String(),
  types: Type.Union([Type.Array(Type.String()), Type.Null()], {
    description: 'The types of the events that are sent; null: all',
  }),
  created_at: Instant,
};

export const WebhookListQuery = Type.Object(
  webhookPageQuery({ default: 100, description: 'The most webhooks to answer' }),
  { additionalProperties: false },
);

export const CreatedWebhook = Type.Object(
  {
    ...settings,
    secret: Type.String({
      description:
        'The secret that signs the messages (Standard Webhooks), shown only once: `whsec_` and 32 bytes in base64',
    }),
  },
  { title: 'CreatedWebhook', description: 'A webhook that was created, and its secret' },
);

const OrNull = (schema: ReturnType<typeof Type.String>, description: string) =>
  Type.Union([schema, Type.Null()], { description });

export const Webhook = Type.Object(
  {
    ...settings,
    updated_at: Instant,
    revision: Type.Integer({
      minimum: 0,
      description: 'Counts the changes of the webhook, from 0',
    }),
    state: Type.Enum(['active', 'failing', 'disabled'], {
      description:
        '`failing` if the last attempt was rejected or had no response; `disabled` gets no events until it is enabled again',
    }),
    disabled_reason: Type.Optional(
      Type.Enum(DISABLED_REASONS, {
        description:
          '`request` of a client, `failing` for a day, or `gone` (the receiver answered 410)',
      }),
    ),
    failing_since: OrNull(Instant, 'When messages started to fail; null while they are accepted'),
    last_error: Type.Union(
      [
        Type.Object(
          { message: Type.String(), at: Instant },
          { title: 'WebhookError', description: 'Why a message was not accepted' },
        ),
        Type.Null(),
      ],
      { description: 'The last failure, if there was one' },
    ),
    delivered_at: OrNull(Instant, 'When the last message was accepted'),
    position: OrNull(
      Type.String(),
      'All events up to this position of the account’s events were delivered; null before the first one',
    ),
    lag_ms: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], {
      description:
        'The age of the oldest undelivered event; 0 without any, null while it is unknown',
    }),
  },
  { title: 'Webhook', description: 'A webhook and its state' },
);
export const WebhookList = Type.Array(Webhook);

const Attempt = {
  at: Type.String({ ...Instant, description: 'When the attempt began' }),
  message_id: Type.String({ description: 'The `webhook-id` of the message' }),
  type: Type.String({ description: 'The type of the event' }),
  status: Type.Union([Type.Integer(), Type.Null()], {
    description: 'The HTTP status of the response; null without a response',
  }),
  error: OrNull(Type.String(), 'Why the message was not accepted; null if it was'),
  duration_ms: Type.Integer({ minimum: 0 }),
};

export const WebhookAttempts = Type.Object(
  {
    webhook_id: WebhookId,
    attempts: Type.Array(
      Type.Object(Attempt, {
        title: 'WebhookAttempt',
        description: 'One attempt to send a message',
      }),
    ),
  },
  { title: 'WebhookAttempts', description: 'The last attempts, newest first' },
);

export const TestedWebhook = Type.Object(
  { accepted: Type.Boolean({ description: 'The receiver answered 2xx' }), ...Attempt },
  { title: 'WebhookTest', description: 'The outcome of a test message' },
);

export const DeletedWebhook = Type.Object(
  { webhook_id: WebhookId },
  { title: 'DeletedWebhook', description: 'A webhook that was deleted' },
);
