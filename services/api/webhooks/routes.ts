import { changeWebhook, deleteWebhook } from '../../../shared/webhooks/changeWebhook.ts';
import { createWebhook, requireCreatable } from '../../../shared/webhooks/createWebhook.ts';
import { listOwnWebhooks, readWebhook, webhookNotFound } from '../../../shared/webhooks/queries.ts';
import { presentWebhook } from './presenter.ts';
import { STREAM_ERROR_CODES } from '../http/errors/errorResponses.ts';
import { DEFECT } from '../http/errors/errorPresenter.ts';
import { defineFeature } from '../http/feature.ts';
import { defineRoute } from '../http/route.ts';
import { CommonQuery, WebhookId } from '../openapi/commonSchemas.ts';
import {
  ChangeWebhookBody,
  CreatedWebhook,
  CreateWebhookBody,
  DeletedWebhook,
  Webhook,
  WebhookList,
} from './schemas.ts';

const createWebhookRoute = defineRoute({
  method: 'post',
  path: '/v1/webhooks',
  operationId: 'createWebhook',
  summary: 'Creates a webhook: events from now on are sent to its address',
  description:
    'Returns the secret that signs the messages, which is never shown again. The endpoint gets the same events of the account as consumers of Kafka.',
  access: 'webhooks:write',
  query: CommonQuery,
  body: CreateWebhookBody,
  data: CreatedWebhook,
  errors: ['webhook_limit_reached'],
  idempotency: {
    prepare: (api, { actor, body }) => requireCreatable(api, actor, body),
    reserve: ({ ids }) => ({ id: ids.typeId('webhook') }),
  },
  handle: async (api, { actor, body, claim }) => ({
    data: await createWebhook(api, actor, body, claim),
  }),
});

const listWebhooksRoute = defineRoute({
  method: 'get',
  path: '/v1/webhooks',
  operationId: 'listWebhooks',
  summary: "Lists the account's webhooks, oldest first",
  access: 'webhooks:read',
  query: CommonQuery,
  data: WebhookList,
  errors: ['key_missing'],
  handle: async (api, { actor }) => {
    const now = api.clock.now();
    const webhooks = await listOwnWebhooks(api, actor.account_id);
    return { data: webhooks.map((webhook) => presentWebhook(webhook, now)) };
  },
});

const getWebhookRoute = defineRoute({
  method: 'get',
  path: '/v1/webhooks/{webhookId}',
  operationId: 'getWebhook',
  summary: 'Returns one webhook and its state',
  access: 'webhooks:read',
  query: CommonQuery,
  data: Webhook,
  errors: ['webhook_not_found', 'key_missing'],
  handle: async (api, { actor, params }) => {
    const webhook = await readWebhook(api, actor.account_id, params['webhookId']!);
    return { data: presentWebhook(webhook, api.clock.now()) };
  },
});

const changeWebhookRoute = defineRoute({
  method: 'patch',
  path: '/v1/webhooks/{webhookId}',
  operationId: 'changeWebhook',
  summary: 'Changes a webhook, or enables or disables it',
  description:
    'A JSON merge patch (RFC 7396): omitted fields stay, and null resets a field to its default.',
  access: 'webhooks:write',
  query: CommonQuery,
  body: ChangeWebhookBody,
  data: Webhook,
  errors: ['webhook_not_found', ...STREAM_ERROR_CODES],
  handle: async (api, { actor, params, body }) => {
    const webhookId = params['webhookId']!;
    await changeWebhook(api, actor, webhookId, body);
    const webhook = await readWebhook(api, actor.account_id, webhookId);
    return { data: presentWebhook(webhook, api.clock.now()) };
  },
});

const deleteWebhookRoute = defineRoute({
  method: 'delete',
  path: '/v1/webhooks/{webhookId}',
  operationId: 'deleteWebhook',
  summary: 'Deletes a webhook',
  description:
    'No further messages are sent, except those in flight. Its address and secret are erased with the account.',
  access: 'webhooks:write',
  query: CommonQuery,
  data: DeletedWebhook,
  errors: ['webhook_not_found', ...STREAM_ERROR_CODES],
  handle: async (api, { actor, params }) => {
    const webhook_id = params['webhookId']!;
    await deleteWebhook(api, actor, webhook_id);
    return { data: { webhook_id } };
  },
});

export const webhooksFeature = defineFeature({
  routes: [
    createWebhookRoute,
    listWebhooksRoute,
    getWebhookRoute,
    changeWebhookRoute,
    deleteWebhookRoute,
  ],
  tags: { webhooks: 'Endpoints that receive events' },
  pathParameters: { webhookId: WebhookId },
  errors: {
    webhook_not_found: { status: 404, description: 'The account has no such webhook' },
    webhook_limit_reached: {
      status: 409,
      description: 'The account already has as many webhooks as it may; nothing was created',
    },
  },
  rejections: { webhook_exists: DEFECT, webhook_missing: webhookNotFound },
});
