import { buildConfiguration, createAgent } from '../../../shared/agents/createAgent.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { findOwnAgent } from '../../../shared/agents/queries.ts';
import { agentTag } from './agentEtag.ts';
import { sendAgentList } from './list.ts';
import { isKnown } from '../http/responses/etag.ts';
import { presentAgentDetail } from './presenter.ts';
import { defineRoute } from '../http/route.ts';
import { agentChangeRoutes } from './changeRoutes.ts';
import {
  AgentDetail,
  AgentList,
  AgentListQuery,
  CreateAgentBody,
  CreatedAgent,
} from './schemas.ts';
import { CommonQuery } from '../openapi/commonSchemas.ts';

const createAgentRoute = defineRoute({
  method: 'post',
  path: '/v1/agents',
  operationId: 'createAgent',
  summary: 'Creates an agent',
  access: 'agents:write',
  query: CommonQuery,
  body: CreateAgentBody,
  data: CreatedAgent,
  errors: ['model_not_supported', 'tool_not_supported', 'component_not_supported'],
  once: {
    reserve: async (api, { actor, body }) => {
      await buildConfiguration(api, actor, body);
      return { id: api.ids.typeId('agent') };
    },
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
  errors: ['agent_not_found', 'agent_erased'],
  holds: LIMITS.http.pageBytes,
  handle: async ({ readModels }, { actor, params }, ctx) => {
    const agent = await findOwnAgent(readModels, actor.account_id, params['agentId']!);
    if (isKnown(ctx, agentTag(agent))) return undefined;
    return { data: presentAgentDetail(agent) };
  },
});

export const agentRoutes = [createAgentRoute, listAgentsRoute, getAgentRoute, ...agentChangeRoutes];
