import { runAgent, reserveRun } from '../../../shared/runs/runAgent.ts';
import { SHARED_SESSION_ERRORS } from '../http/errors/streamErrorCodes.ts';
import { defineRoute } from '../http/route.ts';
import { streamRun, wantsEvents } from './runSse.ts';
import { prefersAsync, respondAsync } from './respondAsync.ts';
import { CommonQuery } from '../openapi/commonSchemas.ts';
import { RunBody, RunResult } from './schemas.ts';
import { StartedTurn } from '../sessions/turnSchemas.ts';

export const runAgentRoute = defineRoute({
  method: 'post',
  path: '/v1/agents/{agentId}/run',
  operationId: 'runAgent',
  summary: 'Runs an agent on an input',
  description:
    'Starts a session, or continues the one that `session_id` names. What is answered with 200 is recorded durably. Runs of one session happen one after the other. With `Prefer: respond-async` the run goes on by itself, and `Location` tells where its turn is to be had.',
  access: 'agents:run',
  query: CommonQuery,
  body: RunBody,
  prefer:
    '`respond-async`: answer 202 as soon as the turn is recorded, with its `Location`; with `wait=N`, only where it has not ended within so many seconds',
  data: RunResult,
  accepted: StartedTurn,
  errors: [
    'model_not_supported',
    'tool_not_supported',
    'agent_not_found',
    'agent_erased',
    'session_of_replay',
    'session_busy',
    'idempotency_in_progress',
    'model_error',
    'tool_error',
    'model_overloaded',
    'turn_interrupted',
    'model_timeout',
    ...SHARED_SESSION_ERRORS,
  ],
  events: {
    description:
      'Where the client accepts `text/event-stream`, what the turn puts out, as it comes: `turn.started`; `output.delta` with `text` and the `round` (model call) it belongs to; `tool.called` with a tool call as the transcript shows it; and at the end `turn.completed` with the envelope of the answer in JSON, or `error` with that of the failure. Ids lead on in the stream of the turn.',
  },
  once: {
    reserve: (api, { actor, params, body }) =>
      reserveRun(api, actor, { agent_id: params['agentId']!, ...body }),
  },
  handle: async (api, { actor, params, body, claim }, ctx) => {
    const input = { agent_id: params['agentId']!, ...body, claim };
    if (wantsEvents(ctx)) return streamRun(api, actor, input, ctx);
    if (prefersAsync(ctx)) return respondAsync(api, actor, input, ctx);
    return { data: await runAgent(api, actor, input) };
  },
});
