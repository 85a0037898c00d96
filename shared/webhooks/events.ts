import { Type } from '../domain/jsonSchema.ts';
import { Erasure, eventSchema, ProtectedTextSchema, type EventOf } from '../domain/schema.ts';

/**
 * The address and the event types to send; all types by default. An address may contain a secret.
 */
const Settings = {
  url: ProtectedTextSchema(),
  types: Type.Optional(Type.Array(Type.String())),
};

const WebhookCreated = eventSchema(
  'webhook.created.v1',
  { ...Settings, secret: ProtectedTextSchema() },
  'A webhook was created; the secret that signs its messages, as Standard Webhooks writes it',
);
const WebhookChanged = eventSchema(
  'webhook.changed.v1',
  { ...Settings, enabled: Type.Optional(Type.Boolean()) },
  'A webhook was changed; all its settings after the change. Early releases did not record whether it is enabled',
);

/** The unchanged settings, so that a change need not read earlier events. Absent in early releases. */
const SameSettings = { url: Type.Optional(ProtectedTextSchema()), types: Settings.types };

const WebhookEnabled = eventSchema(
  'webhook.enabled.v1',
  SameSettings,
  'A webhook that was disabled goes on from where it was',
);

/**
 * Why a webhook is disabled: on request, after a day of failures, or because the receiver is gone.
 */
export const DISABLED_REASONS = ['request', 'failing', 'gone'] as const;
const WebhookDisabled = eventSchema(
  'webhook.disabled.v1',
  { ...SameSettings, reason: Type.Enum(DISABLED_REASONS) },
  'Nothing is sent to a webhook until it is enabled again',
);
const WebhookDeleted = eventSchema('webhook.deleted.v1', {}, 'A webhook was deleted');
const WebhookErased = eventSchema(
  'webhook.erased.v1',
  Erasure.properties,
  'The address and the secret of a webhook were erased: nothing follows in its stream',
);

export const webhookEventSchemas = [
  WebhookCreated,
  WebhookChanged,
  WebhookEnabled,
  WebhookDisabled,
  WebhookDeleted,
  WebhookErased,
] as const;

export type WebhookEvent = EventOf<(typeof webhookEventSchemas)[number]>;
export type WebhookSettings = Omit<EventOf<typeof WebhookChanged>['data'], 'enabled'>;
export type DisabledReason = (typeof DISABLED_REASONS)[number];
