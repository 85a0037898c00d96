import { reserveRun } from '../../../shared/commands/run/reserveRun.ts';
import { runAgent } from '../../../shared/commands/run/runAgent.ts';
import { defineRoute } from '../route.ts';
import { CommonQuery } from '../schemas/common.ts';
import { RunBody, RunResult } from '../schemas/runs.ts';

export const runAgentRoute = defineRoute({
  method: 'post',
  path: '/v1/agents/{agentId}/run',
  operationId: 'runAgent',
  summary: 'Runs an agent on an input',
  description:
    'Starts a session, or continues the one that `session_id` names. What is answered with 200 is recorded durably. Runs of one session happen one after the other.',
  access: 'agents:run',
  query: CommonQuery,
  body: RunBody,
  data: RunResult,
  errors: [
    'model_not_supported',
    'tool_not_supported',
    'agent_not_found',
    'agent_erased',
    'session_not_found',
    'session_erased',
    'session_busy',
    'idempotency_in_progress',
    'stream_damaged',
    'release_too_old',
    'key_missing',
    'model_error',
    'tool_error',
    'model_overloaded',
    'turn_interrupted',
    'model_timeout',
  ],
  once: {
    reserve: (api, { actor, params, body }) =>
      reserveRun(api, actor, { agent_id: params['agentId']!, ...body }),
  },
  handle: async (api, { actor, params, body, claim }) => ({
    data: await runAgent(api, actor, { agent_id: params['agentId']!, ...body, claim }),
  }),
});
