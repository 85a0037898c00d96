import type { Context } from 'koa';
import type { Static } from 'typebox';
import type { Actor } from '../../../shared/commandHandling/context.ts';
import {
  changeWebhook,
  deleteWebhook,
  type ChangedWebhook,
} from '../../../shared/webhooks/changeWebhook.ts';
import { createWebhook, prepareWebhookUrl } from '../../../shared/webhooks/createWebhook.ts';
import {
  listOwnWebhooks,
  requireOwnWebhook,
  readWebhook,
  webhookNotFoundError,
  type ShownWebhook,
} from '../../../shared/webhooks/queries.ts';
import { testWebhook } from '../../../shared/webhooks/testWebhook.ts';
import { LIMITS } from '../../../shared/limits.ts';
import type { RouteContext } from '../context.ts';
import { createRevisionEtag, parseIfMatch } from '../http/responses/etag.ts';
import {
  PAGE_BUFFER_BYTES,
  parsePageQuery,
  renderPage,
  type ListFormat,
} from '../http/responses/listResponse.ts';
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
  TestedWebhook,
  Webhook,
  WebhookAttempts,
  WebhookList,
  WebhookListQuery,
} from './schemas.ts';

const revisionEtag = createRevisionEtag(Webhook);

type Params = Readonly<Record<string, string>>;

const requestedChange = (ctx: Context, { webhookId }: Params): ChangedWebhook => ({
  webhook_id: webhookId!,
  expected: parseIfMatch(ctx),
});

async function answerWebhook(
  api: RouteContext,
  { account_id }: Actor,
  { webhookId }: Params,
  ctx: Context,
): Promise<{ data: Static<typeof Webhook> }> {
  const webhook = await readWebhook(api, account_id, webhookId!);
  const { webhook_id: id, revision, updated_at } = webhook.row;
  ctx.set('etag', revisionEtag({ id, revision, updated_at }));
  return { data: presentWebhook(webhook, api.clock.now()) };
}

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
    prepare: (api, { actor, body }) => prepareWebhookUrl(api, actor, body),
    reserve: ({ ids }) => ({ id: ids.typeId('webhook') }),
  },
  returnsLocation: true,
  returnsEtag: true,
  handle: async (api, { actor, body, claim }, ctx) => {
    const data = await createWebhook(api, actor, body, claim);
    const { webhook_id: id, created_at: updated_at } = data;
    ctx.set('location', `/v1/webhooks/${id}`);
    ctx.set('etag', revisionEtag({ id, revision: 0, updated_at }));
    return { data };
  },
});

const listWebhooksRoute = defineRoute({
  method: 'get',
  path: '/v1/webhooks',
  operationId: 'listWebhooks',
  summary: "Lists the account's webhooks, oldest first",
  access: 'webhooks:read',
  query: WebhookListQuery,
  data: WebhookList,
  errors: ['key_missing'],
  bufferBytes: PAGE_BUFFER_BYTES,
  handle: async (api, { actor, query }) => {
    const now = api.clock.now();
    const webhooks = await listOwnWebhooks(api, actor.account_id, parsePageQuery(query));
    const rows: ListFormat<ShownWebhook> = {
      emptyData: [],
      present: (webhook) => presentWebhook(webhook, now),
      cursorOf: ({ row }) => row.webhook_id,
    };
    return { page: (to) => renderPage(webhooks, rows, to) };
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
  returnsEtag: true,
  errors: ['webhook_not_found', 'key_missing'],
  handle: (api, { actor, params }, ctx) => answerWebhook(api, actor, params, ctx),
});

const changeWebhookRoute = defineRoute({
  method: 'patch',
  path: '/v1/webhooks/{webhookId}',
  operationId: 'changeWebhook',
  summary: 'Changes a webhook, or enables or disables it',
  description:
    'A JSON merge patch (RFC 7396): omitted fields stay, and null resets a field to its default. With `If-Match`, only if the webhook is still at that revision.',
  access: 'webhooks:write',
  query: CommonQuery,
  body: ChangeWebhookBody,
  data: Webhook,
  ifMatch: true,
  returnsEtag: true,
  errors: ['webhook_not_found', 'precondition_failed', ...STREAM_ERROR_CODES],
  handle: async (api, { actor, params, body }, ctx) => {
    await changeWebhook(api, actor, requestedChange(ctx, params), body);
    return answerWebhook(api, actor, params, ctx);
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
  ifMatch: true,
  errors: ['webhook_not_found', 'precondition_failed', ...STREAM_ERROR_CODES],
  handle: async (api, { actor, params }, ctx) => {
    const target = requestedChange(ctx, params);
    await deleteWebhook(api, actor, target);
    return { data: { webhook_id: target.webhook_id } };
  },
});

const testWebhookRoute = defineRoute({
  method: 'post',
  path: '/v1/webhooks/{webhookId}/test',
  operationId: 'testWebhook',
  summary: 'Sends a signed test message and returns the outcome',
  description: `One attempt, also to a disabled webhook, with at most ${LIMITS.webhooks.answerMs / 1_000} s for the response. The message has the type \`turnlog.webhook.test.v1\`; the state of the webhook does not change. A repeated request sends the message again, with the same \`webhook-id\`.`,
  access: 'webhooks:write',
  query: CommonQuery,
  data: TestedWebhook,
  errors: ['webhook_not_found', 'key_missing'],
  idempotency: {
    reserve: async (api, { actor, params }) => {
      await requireOwnWebhook(api, actor.account_id, params['webhookId']!);
      return { id: api.ids.uuid() };
    },
  },
  handle: async (api, { actor, params, claim }) => {
    const attempt = await testWebhook(api, actor, params['webhookId']!, claim);
    return { data: { accepted: attempt.error === null, ...attempt } };
  },
});

const getAttemptsRoute = defineRoute({
  method: 'get',
  path: '/v1/webhooks/{webhookId}/attempts',
  operationId: 'getWebhookAttempts',
  summary: 'Returns the last attempts to send messages, newest first',
  description: `At most ${LIMITS.webhooks.attempts}, about a second after they end. Test messages are not included.`,
  access: 'webhooks:read',
  query: CommonQuery,
  data: WebhookAttempts,
  errors: ['webhook_not_found'],
  handle: async (api, { actor, params }) => {
    const { webhook_id } = await requireOwnWebhook(api, actor.account_id, params['webhookId']!);
    const { attempts = [] } = (await api.webhooks.progress.find(webhook_id)) ?? {};
    return { data: { webhook_id, attempts: attempts.toReversed() } };
  },
});

export const webhooksFeature = defineFeature({
  routes: [
    createWebhookRoute,
    listWebhooksRoute,
    getWebhookRoute,
    changeWebhookRoute,
    deleteWebhookRoute,
    testWebhookRoute,
    getAttemptsRoute,
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
  rejections: { webhook_exists: DEFECT, webhook_missing: webhookNotFoundError },
});
