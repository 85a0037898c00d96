import { defineStream, erasureOf, type Feature } from '../domain/feature.ts';
import { webhook } from './decider.ts';
import { webhookEventSchemas } from './events.ts';
import { WEBHOOK_LIMITS } from './limits.ts';
import { projectWebhook } from './projection.ts';
import { WEBHOOK_TABLES } from './tables.ts';

export const webhooks = {
  stream: defineStream('webhook', webhookEventSchemas, {
    opening: 'webhook.created.v1',
    alwaysRecorded: ['webhook.disabled.v1', 'webhook.deleted.v1'],
    project: projectWebhook,
    table: 'webhooks',
    erasure: erasureOf(
      webhook,
      (erasure) => ({ type: 'erase_webhook', ...erasure }),
      (data) => ({ type: 'webhook.erased.v1', data }),
    ),
  }),
  tables: WEBHOOK_TABLES,
  errors: ['webhook_not_found', 'webhook_limit_reached'],
  limits: WEBHOOK_LIMITS,
} as const satisfies Feature;
