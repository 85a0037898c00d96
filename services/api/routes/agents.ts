import { createAgent } from '../../../shared/commands/createAgent.ts';
import { findOwnAgent, listAgents } from '../../../shared/queries/agents.ts';
import { keptAnswer } from '../agentListCache.ts';
import { jsonText, linkNext, sendJson, successEnvelope, wantsPretty } from '../envelope.ts';
import { presentAgent, presentAgentDetail } from '../presenters/agent.ts';
import { defineRoute } from '../route.ts';
import {
  AgentDetail,
  AgentList,
  AgentListQuery,
  CreateAgentBody,
  CreatedAgent,
} from '../schemas/agents.ts';
import { CommonQuery } from '../schemas/common.ts';

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
  handle: async (api, { actor, body }) => ({ data: await createAgent(api, actor, body) }),
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
  handle: async ({ readModels }, { actor, query }, ctx) => {
    const kept = await keptAnswer(readModels, actor.account_id, ctx.querystring, async () => {
      const { rows, next } = await listAgents(readModels, actor.account_id, query);
      return {
        body: Buffer.from(jsonText(successEnvelope(rows.map(presentAgent)), wantsPretty(ctx))),
        next,
      };
    });
    if (kept.next !== undefined) linkNext(ctx, kept.next);
    sendJson(ctx, 200, kept.body);
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
  errors: ['agent_not_found'],
  handle: async ({ readModels }, { actor, params }) => ({
    data: presentAgentDetail(await findOwnAgent(readModels, actor.account_id, params['agentId']!)),
  }),
});

export const agentRoutes = [createAgentRoute, listAgentsRoute, getAgentRoute];
