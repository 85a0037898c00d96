import { buildConfiguration, createAgent } from '../../../shared/agents/createAgent.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { agentNotFoundError, findOwnAgent } from '../../../shared/agents/queries.ts';
import { agentErasedError } from '../../../shared/erasure/errors.ts';
import { agentEtag } from './agentEtag.ts';
import { sendAgentList } from './list.ts';
import { respondNotModified } from '../http/responses/etag.ts';
import { presentAgentDetail } from './presenter.ts';
import { DEFECT } from '../http/errors/errorPresenter.ts';
import { defineFeature } from '../http/feature.ts';
import { defineRoute } from '../http/route.ts';
import { agentChangeRoutes } from './changeRoutes.ts';
import {
  AgentDetail,
  AgentList,
  AgentListQuery,
  CreateAgentBody,
  CreatedAgent,
} from './schemas.ts';
import { AgentId, CommonQuery } from '../openapi/commonSchemas.ts';

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
  errors: ['model_not_supported', 'tool_not_supported', 'component_not_supported'],
  idempotency: {
    prepare: (api, { actor, body }) => buildConfiguration(api, actor, body),
    reserve: ({ ids }) => ({ id: ids.typeId('agent') }),
  },
  handle: async (api, { actor, body, claim }) => ({
    data: await createAgent(api, actor, body, claim),
  }),
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
  path: '/v1/agents/{agentId}',
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

export const agentsFeature = defineFeature({
  routes: [createAgentRoute, listAgentsRoute, getAgentRoute, ...agentChangeRoutes],
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
    component_not_supported: {
      status: 400,
      description: 'The UI component is not configured here; the message lists those that are',
    },
    agent_not_found: { status: 404, description: 'The account has no such agent' },
    agent_erased: { status: 410, description: 'The texts of the agent were erased' },
    precondition_failed: {
      status: 412,
      description: 'The agent is at another revision than `If-Match` names; nothing was recorded',
    },
  },
  rejections: {
    agent_exists: DEFECT,
    agent_missing: DEFECT,
    agent_deleted: agentNotFoundError,
    agent_erased: agentErasedError,
  },
});
