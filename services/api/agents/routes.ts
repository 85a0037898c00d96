import { buildConfiguration, createAgent } from '../../../shared/agents/createAgent.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { agentNotFoundError, findOwnAgent } from '../../../shared/agents/queries.ts';
import { agentErasedError } from '../../../shared/erasure/errors.ts';
import { sendAgentList } from './list.ts';
import { createRevisionEtag, parseIfMatch, respondNotModified } from '../http/responses/etag.ts';
import { presentAgentDetail, presentRevision } from './presenter.ts';
import { DEFECT } from '../http/errors/errorPresenter.ts';
import { defineFeature } from '../http/feature.ts';
import { defineRoute } from '../http/route.ts';
import {
  AgentDetail,
  AgentList,
  AgentListQuery,
  CreateAgentBody,
  CreatedAgent,
  AgentRevisions,
  AgentRevisionsQuery,
  ChangeAgentBody,
  PlainFormat,
  SchemaFormat,
  DeletedAgent,
} from './schemas.ts';
import { AgentId, CommonQuery } from '../openapi/commonSchemas.ts';
import type { Context } from 'koa';
import type { TSchema } from 'typebox';
import { Type } from '../../../shared/domain/jsonSchema.ts';
import type { ChatResponseFormat } from '../../../shared/sessions/turns/chat.ts';
import { bodyValidator, invalidRequestError } from '../http/errors/validation.ts';
import {
  deleteAgent,
  patchAgent,
  replaceAgent,
  type ChangedAgent,
} from '../../../shared/agents/changeAgent.ts';
import { readAgentRevisions, type RecordedRevision } from '../../../shared/agents/revisions.ts';
import type { AgentRow } from '../../../shared/readModels/tables.ts';
import {
  PAGE_BUFFER_BYTES,
  renderPage,
  type ListFormat,
  parsePageQuery,
} from '../http/responses/listResponse.ts';
import { STREAM_ERROR_CODES } from '../http/errors/errorResponses.ts';

const revisionEtag = createRevisionEtag(AgentDetail);
const agentEtag = ({ agent_id, revision, updated_at }: AgentRow): string =>
  revisionEtag({ id: agent_id, revision, updated_at });

const AGENT_PATH = '/v1/agents/{agentId}';
const AGENT = { parameters: { agentId: '$response.body#/data/agent_id' } };

const createAgentRoute = defineRoute({
  method: 'post',
  path: '/v1/agents',
  operationId: 'createAgent',
  summary: 'Creates an agent',
  access: 'agents:write',
  query: CommonQuery,
  body: CreateAgentBody,
  data: CreatedAgent,
  links: {
    GetAgent: { operationId: 'getAgent', description: 'The agent that was created', ...AGENT },
    RunAgent: { operationId: 'runAgent', description: 'Runs it', ...AGENT },
  },
  errors: ['model_not_supported', 'tool_not_supported'],
  idempotency: {
    prepare: (api, { actor, body }) => buildConfiguration(api, actor, body),
    reserve: ({ ids }) => ({ id: ids.typeId('agent') }),
  },
  returnsLocation: true,
  returnsEtag: true,
  handle: async (api, { actor, body, claim }, ctx) => {
    const data = await createAgent(api, actor, body, claim);
    const { agent_id: id, created_at: updated_at } = data;
    ctx.set('location', `/v1/agents/${id}`);
    ctx.set('etag', revisionEtag({ id, revision: 0, updated_at }));
    return { data };
  },
});

const listAgentsRoute = defineRoute({
  method: 'get',
  path: '/v1/agents',
  operationId: 'listAgents',
  summary: "Lists the account's agents, oldest first",
  description:
    'Complete when no `limit` is given. With `limit`, the `Link` header with `rel="next"` leads to the next page.',
  access: 'agents:read',
  query: AgentListQuery,
  data: AgentList,
  ifNoneMatch: true,
  errors: [],
  handle: async (api, { actor, query }, ctx) => {
    await sendAgentList(api, actor.account_id, query, ctx);
    return undefined;
  },
});

const getAgentRoute = defineRoute({
  method: 'get',
  path: AGENT_PATH,
  operationId: 'getAgent',
  summary: 'Returns one agent',
  access: 'agents:read',
  query: CommonQuery,
  data: AgentDetail,
  ifNoneMatch: true,
  errors: ['agent_not_found', 'agent_erased'],
  bufferBytes: LIMITS.http.pageBytes,
  handle: async ({ readModels }, { actor, params }, ctx) => {
    const agent = await findOwnAgent(readModels, actor.account_id, params['agentId']!);
    if (respondNotModified(ctx, agentEtag(agent))) return undefined;
    return { data: presentAgentDetail(agent) };
  },
});

const CHANGE_ERROR_CODES = [
  'agent_not_found',
  'agent_erased',
  'precondition_failed',
  'stream_damaged',
  'release_too_old',
  'key_missing',
] as const;
const CONFIGURATION_ERROR_CODES = ['model_not_supported', 'tool_not_supported'] as const;

const requestedChange = (
  ctx: Context,
  { agentId }: Readonly<Record<string, string>>,
): ChangedAgent => ({
  agent_id: agentId!,
  expected: parseIfMatch(ctx),
});

function presentChanged(ctx: Context, row: AgentRow) {
  ctx.set('etag', agentEtag(row));
  return { data: presentAgentDetail(row) };
}

const replaceAgentRoute = defineRoute({
  method: 'put',
  path: AGENT_PATH,
  operationId: 'replaceAgent',
  summary: 'Replaces the configuration of an agent',
  description:
    'Omitted fields are removed, or reset to their defaults. Later runs use the new configuration, in existing sessions too. With `If-Match`, only if the agent is still at that revision.',
  access: 'agents:write',
  query: CommonQuery,
  body: CreateAgentBody,
  data: AgentDetail,
  ifMatch: true,
  returnsEtag: true,
  errors: [...CHANGE_ERROR_CODES, ...CONFIGURATION_ERROR_CODES],
  bufferBytes: LIMITS.http.pageBytes,
  handle: async (api, { actor, params, body }, ctx) =>
    presentChanged(ctx, await replaceAgent(api, actor, requestedChange(ctx, params), body)),
});

const formatCheck = (response_format: TSchema) => bodyValidator(Type.Object({ response_format }));
const [checkPlain, checkSchema] = [formatCheck(PlainFormat), formatCheck(SchemaFormat)];

/** Checks the response format that a patch results in. */
function checkFormat(response_format: unknown): ChatResponseFormat {
  const { type, json_schema } = response_format as { type?: unknown; json_schema?: unknown };
  if (type !== 'json_schema' && json_schema !== undefined)
    throw invalidRequestError('body', [
      {
        path: '/response_format/json_schema',
        message: 'must be removed by null where the type is not json_schema',
      },
    ]);
  const check = type === 'json_schema' ? checkSchema : checkPlain;
  return (check({ response_format }) as { response_format: ChatResponseFormat }).response_format;
}

const changeAgentRoute = defineRoute({
  method: 'patch',
  path: AGENT_PATH,
  operationId: 'changeAgent',
  summary: 'Changes fields of an agent’s configuration',
  description:
    'A JSON merge patch (RFC 7396): omitted fields stay, null removes a field, and `response_format` is merged member by member. Only the values that it sets must be available. With `If-Match`, only if the agent is still at that revision.',
  access: 'agents:write',
  query: CommonQuery,
  body: ChangeAgentBody,
  data: AgentDetail,
  ifMatch: true,
  returnsEtag: true,
  errors: [...CHANGE_ERROR_CODES, ...CONFIGURATION_ERROR_CODES],
  bufferBytes: LIMITS.http.pageBytes,
  handle: async (api, { actor, params, body }, ctx) =>
    presentChanged(
      ctx,
      await patchAgent(api, actor, requestedChange(ctx, params), { patch: body, checkFormat }),
    ),
});

const deleteAgentRoute = defineRoute({
  method: 'delete',
  path: AGENT_PATH,
  operationId: 'deleteAgent',
  summary: 'Deletes an agent',
  description:
    'The agent is no longer listed and can’t be run; running turns end normally. Its revisions and sessions stay readable. No text is erased.',
  access: 'agents:write',
  query: CommonQuery,
  data: DeletedAgent,
  ifMatch: true,
  errors: CHANGE_ERROR_CODES,
  handle: async (api, { actor, params }, ctx) => ({
    data: await deleteAgent(api, actor, requestedChange(ctx, params)),
  }),
});

const REVISION_LIST: ListFormat<RecordedRevision> = {
  emptyData: [],
  present: presentRevision,
  cursorOf: ({ revision }) => String(revision),
};

const listRevisionsRoute = defineRoute({
  method: 'get',
  path: `${AGENT_PATH}/revisions`,
  operationId: 'listAgentRevisions',
  summary: 'Lists the revisions of an agent, newest or oldest first',
  description: 'Each change as it was recorded, also for a deleted agent.',
  access: 'agents:read',
  query: AgentRevisionsQuery,
  data: AgentRevisions,
  errors: ['agent_not_found', 'agent_erased', ...STREAM_ERROR_CODES],
  bufferBytes: PAGE_BUFFER_BYTES,
  handle: async (api, { actor, params, query }) => {
    const options = { ...parsePageQuery(query), order: query.order ?? 'newest' };
    const page = await readAgentRevisions(api, actor.account_id, params['agentId']!, options);
    return { page: (to) => renderPage(page, REVISION_LIST, to) };
  },
});

export const agentsFeature = defineFeature({
  routes: [
    createAgentRoute,
    listAgentsRoute,
    getAgentRoute,
    replaceAgentRoute,
    changeAgentRoute,
    deleteAgentRoute,
    listRevisionsRoute,
  ],
  tags: { agents: 'Stored configurations, and their runs' },
  pathParameters: { agentId: AgentId },
  errors: {
    model_not_supported: {
      status: 400,
      description: 'The model is not configured here; the message lists those that are',
    },
    tool_not_supported: {
      status: 400,
      description: 'The tool is not configured here; the message lists those that are',
    },
    agent_not_found: { status: 404, description: 'The account has no such agent' },
    agent_erased: { status: 410, description: 'The texts of the agent were erased' },
    precondition_failed: {
      status: 412,
      description:
        'What it would change is at another revision than `If-Match` names; nothing was recorded',
    },
  },
  rejections: {
    agent_exists: DEFECT,
    agent_missing: DEFECT,
    agent_deleted: agentNotFoundError,
    agent_erased: agentErasedError,
  },
});
