import type { Context } from 'koa';
import {
  deleteAgent,
  patchAgent,
  replaceAgent,
  type ChangedAgent,
} from '../../../shared/agents/changeAgent.ts';
import { readAgentRevisions, type RecordedRevision } from '../../../shared/agents/revisions.ts';
import type { AgentRow } from '../../../shared/readModels/tables.ts';
import { agentEtag, parseIfMatch } from './agentEtag.ts';
import {
  PAGE_BUFFER_BYTES,
  renderPage,
  type ListFormat,
  parsePageQuery,
} from '../http/responses/listResponse.ts';
import { presentAgentDetail, presentRevision } from './presenter.ts';
import { STREAM_ERROR_CODES } from '../http/errors/streamErrorCodes.ts';
import { defineRoute } from '../http/route.ts';
import {
  AgentDetail,
  AgentRevisions,
  AgentRevisionsQuery,
  ChangeAgentBody,
  CreateAgentBody,
  DeletedAgent,
} from './schemas.ts';
import { CommonQuery } from '../openapi/commonSchemas.ts';

const path = '/v1/agents/{agentId}';

const CHANGE_ERROR_CODES = [
  'agent_not_found',
  'agent_erased',
  'precondition_failed',
  'stream_damaged',
  'release_too_old',
  'key_missing',
] as const;
const CONFIGURATION_ERROR_CODES = [
  'model_not_supported',
  'tool_not_supported',
  'component_not_supported',
] as const;

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
  path,
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
  handle: async (api, { actor, params, body }, ctx) =>
    presentChanged(ctx, await replaceAgent(api, actor, requestedChange(ctx, params), body)),
});

const changeAgentRoute = defineRoute({
  method: 'patch',
  path,
  operationId: 'changeAgent',
  summary: 'Changes fields of an agent’s configuration',
  description:
    'A JSON merge patch (RFC 7396): omitted fields stay, null removes a field. Only the values that it sets must be available. With `If-Match`, only if the agent is still at that revision.',
  access: 'agents:write',
  query: CommonQuery,
  body: ChangeAgentBody,
  data: AgentDetail,
  ifMatch: true,
  returnsEtag: true,
  errors: [...CHANGE_ERROR_CODES, ...CONFIGURATION_ERROR_CODES],
  handle: async (api, { actor, params, body }, ctx) =>
    presentChanged(ctx, await patchAgent(api, actor, requestedChange(ctx, params), body)),
});

const deleteAgentRoute = defineRoute({
  method: 'delete',
  path,
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
  path: `${path}/revisions`,
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

export const agentChangeRoutes = [
  replaceAgentRoute,
  changeAgentRoute,
  deleteAgentRoute,
  listRevisionsRoute,
];
