import { Type } from 'typebox';
import { DISABLED_REASONS } from '../../../shared/webhooks/events.ts';
import { Instant } from '../../../shared/domain/schema.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { publicEventSchemas } from '../../../shared/publicEvents/publicEvent.ts';
import { WebhookId } from '../openapi/commonSchemas.ts';
import { textSchema } from '../openapi/textSchemas.ts';

const TYPES = publicEventSchemas.map(({ type }) => type);

const Url = textSchema({
  maxLength: LIMITS.webhooks.urlCharacters,
  description:
    'Where events are sent: an `https://` address without user, password and fragment. It is looked up for each message, and must not lead into a private network',
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
    description: 'Where events are sent, and which; without `types` all',
  },
);

export const ChangeWebhookBody = Type.Object(
  {
    url: Type.Optional(Url),
    types: Type.Optional(Type.Union([Types, Type.Null()], { description: 'null: all types' })),
    enabled: Type.Optional(
      Type.Boolean({
        description: '`true` goes on after the last message that was taken; `false` stops',
      }),
    ),
  },
  {
    additionalProperties: false,
    title: 'ChangeWebhookRequest',
    description: 'What is to change; the rest stays',
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

export const CreatedWebhook = Type.Object(
  {
    ...settings,
    secret: Type.String({
      description:
        'What signs the messages (Standard Webhooks), shown this once: `whsec_` and 32 bytes in base64',
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
    state: Type.Enum(['active', 'failing', 'disabled'], {
      description:
        '`failing` since the last try was refused or had no answer; `disabled` gets nothing until it is enabled again',
    }),
    disabled_reason: Type.Optional(
      Type.Enum(DISABLED_REASONS, {
        description:
          '`request` of a client, `failing` for a day, or `gone` (the receiver answered 410)',
      }),
    ),
    failing_since: OrNull(Instant, 'Since when no message was taken; null while all is well'),
    last_error: Type.Union(
      [
        Type.Object(
          { message: Type.String(), at: Instant },
          { title: 'WebhookError', description: 'Why a message was not taken' },
        ),
        Type.Null(),
      ],
      { description: 'The last failure, if there was one' },
    ),
    delivered_at: OrNull(Instant, 'When the last message was taken'),
    position: OrNull(
      Type.String(),
      'Everything up to here was sent and taken: a position of the account’s events; null before the first',
    ),
    lag_ms: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], {
      description:
        'The age of the oldest event that is known to wait; 0 where none does, null where nothing is known yet',
    }),
  },
  { title: 'Webhook', description: 'A webhook, and how it goes' },
);
export const WebhookList = Type.Array(Webhook);

export const DeletedWebhook = Type.Object(
  { webhook_id: WebhookId },
  { title: 'DeletedWebhook', description: 'A webhook that was deleted' },
);
