import type { Context } from 'koa';
import type { Static } from 'typebox';
import type { Actor } from '../../../shared/commandHandling/context.ts';
import { seesReasoning } from '../../../shared/chatTokens/chatAccess.ts';
import type { RunInput } from '../../../shared/runs/runRequest.ts';
import type { RouteContext } from '../context.ts';
import { readPreferences, setPreferenceApplied } from '../http/preferHeader.ts';
import { prepareRun, reserveRun } from '../../../shared/runs/prepareRun.ts';
import { runAgent, startInBackground, startRun } from '../../../shared/runs/runAgent.ts';
import { createOwnOutcome } from '../../../shared/runs/live/followTurn.ts';
import { SHARED_SESSION_ERROR_CODES } from '../http/errors/errorResponses.ts';
import { sessionBusyError } from '../../../shared/runs/queueing/sessionQueue.ts';
import { DEFECT } from '../http/errors/errorPresenter.ts';
import { defineFeature } from '../http/feature.ts';
import { defineRoute, type Answer } from '../http/route.ts';
import { CommonQuery } from '../openapi/commonSchemas.ts';
import { RunBody, RunResult } from './schemas.ts';
import { StartedTurn } from '../sessions/schemas.ts';
import { TurnEventId, TurnStreamEvent } from '../sessions/turnStreamSchemas.ts';
import {
  END_OF_OUTPUT,
  START_OF_OUTPUT,
} from '../../../shared/sessions/turns/turnOutputPosition.ts';
import { createKeyCheck } from '../http/access/keyRevocation.ts';
import { turnPath } from '../http/responses/envelope.ts';
import { sendEventStream } from '../http/responses/sse.ts';
import { acquireStream, readTurnPosition, turnSse } from '../sessions/turnSse.ts';

const prefersSse = (ctx: Context): boolean =>
  ctx.get('accept').toLowerCase().includes('text/event-stream') &&
  ctx.accepts('application/json', 'text/event-stream') === 'text/event-stream';

/**
 * Starts a run and streams its turn. Errors before the turn starts become the response. A retry
 * continues after its `Last-Event-ID`; the first attempt has received nothing yet.
 */
async function runSse(
  api: RouteContext,
  actor: Actor,
  input: RunInput,
  ctx: Context,
): Promise<undefined> {
  const { account_id } = actor;
  readTurnPosition(ctx);
  acquireStream(api, account_id, ctx);
  const started = await startRun(api, actor, { ...input, deltas: 'caller' });
  const { session_id, turn } = started;
  const received = started.resultWithin ? readTurnPosition(ctx, turn) : undefined;
  const after = received === 'end' ? END_OF_OUTPUT : (received ?? START_OF_OUTPUT);
  const subject = { account_id, session_id, turn };
  const awaitOwnOutcome = createOwnOutcome(started);
  const reasoning = seesReasoning(actor);
  const isFromStart = received === undefined;
  const following = { subject, after, isFromStart, reasoning, awaitOwnOutcome };
  sendEventStream(ctx, createKeyCheck(api, actor), (signal) =>
    turnSse(api, following, ctx, signal),
  );
}

/** The answer to a run that continues in the background, or that ended within the wait. */
type RunAnswer = Answer<Static<typeof RunResult> | Static<typeof StartedTurn>>;

const prefersAsync = (ctx: Context): boolean => readPreferences(ctx).respondAsync;

/** Answers with the location of the turn once it is recorded, or with a result within the wait. */
async function respondAsync(
  api: RouteContext,
  actor: Actor,
  input: RunInput,
  ctx: Context,
): Promise<RunAnswer> {
  const preferences = readPreferences(ctx);
  const waitMs = (preferences.wait ?? 0) * 1_000;
  const started = await startInBackground(api, actor, { ...input, waitMs });
  setPreferenceApplied(ctx, { ...preferences, respondAsync: 'running' in started });
  if ('result' in started) return { data: started.result };
  const { session_id, turn } = started.running;
  ctx.set('location', turnPath(started.running));
  return { data: { session_id, turn, status: 'running' }, status: 202 };
}

const SESSION = { parameters: { sessionId: '$response.body#/data/session_id' } };

const runAgentRoute = defineRoute({
  method: 'post',
  path: '/v1/agents/{agentId}/run',
  operationId: 'runAgent',
  summary: 'Runs an agent on an input',
  description:
    'Starts a session, or continues the one that `session_id` names. A result with status 200 is recorded durably. Runs of one session execute one after the other. With `Prefer: respond-async` the run continues in the background, and `Location` is the path of its turn. A failure of a turn that has started names the turn in `session_id`, `turn` and `Location`.',
  access: 'agents:run',
  chatTarget: ({ params, body }) => ({ agent_id: params['agentId'], session_id: body.session_id }),
  query: CommonQuery,
  body: RunBody,
  prefer:
    '`respond-async`: respond with 202 and the `Location` of the turn as soon as it is recorded; with `wait=N`, only if the turn has not ended within N seconds',
  data: RunResult,
  headers: { 'Last-Event-ID': TurnEventId },
  links: {
    GetSession: { operationId: 'getSession', description: 'The transcript so far', ...SESSION },
    ListSessionEvents: {
      operationId: 'listSessionEvents',
      description: 'What was recorded',
      ...SESSION,
    },
    ProveSession: {
      operationId: 'proveSession',
      description: 'Proof that all of it is in the log',
      ...SESSION,
    },
    EraseSession: { operationId: 'eraseSession', description: 'Erases its texts', ...SESSION },
    CancelTurn: { operationId: 'cancelTurn', description: 'Cancels its open turn', ...SESSION },
    RunAgain: {
      operationId: 'runAgent',
      description: 'The next turn of the session',
      parameters: { agentId: '$request.path.agentId' },
    },
  },
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
    ...SHARED_SESSION_ERROR_CODES,
  ],
  events: {
    schema: TurnStreamEvent,
    description:
      'If the client accepts `text/event-stream`, the output of the turn as it arrives: `turn.started`; `output.delta` with `text` and the `round` (model call) it belongs to; `tool.called` with a tool call as the transcript shows it; and at the end `turn.completed` with the JSON envelope of the result, or `error` with that of the failure. The ids are valid in the stream of the turn. A retry with the same `Idempotency-Key` and `Last-Event-ID` continues after that event.',
  },
  idempotency: {
    prepare: (api, { actor, params, body }) =>
      prepareRun(api, actor, { agent_id: params['agentId']!, ...body }),
    reserve: (api, _request, prepared) => reserveRun(api, prepared),
  },
  handle: async (api, { actor, params, body, claim }, ctx) => {
    const input = { agent_id: params['agentId']!, ...body, claim };
    if (prefersSse(ctx)) return runSse(api, actor, input, ctx);
    await api.responseMemory.waitForRoom(actor.account_id, ctx.res);
    if (prefersAsync(ctx)) return respondAsync(api, actor, input, ctx);
    return { data: await runAgent(api, actor, input) };
  },
});

export const runsFeature = defineFeature({
  routes: [runAgentRoute],
  errors: {
    turn_interrupted: {
      status: 503,
      description:
        'The turn was cancelled, or cut off before its end could be recorded: the message and the transcript say which; the run may be retried',
    },
    model_error: {
      status: 502,
      description:
        'The model server refused, failed or sent an invalid answer; the turn is recorded as failed',
      isLoggedWithTurn: true,
    },
    tool_error: {
      status: 502,
      description:
        'The model called tools for 8 rounds without an answer, or too many of them, and the turn is recorded as failed; or a tool server has never responded, and nothing is recorded',
      isLoggedWithTurn: true,
    },
    model_overloaded: {
      status: 503,
      description:
        'The model server is overloaded, limits the rate, or has failed too often and is not called for now; `Retry-After` says when to try again',
      isLoggedWithTurn: true,
    },
    model_timeout: {
      status: 504,
      description: 'The model did not answer in time; the turn is recorded as failed',
      isLoggedWithTurn: true,
    },
  },
  rejections: {
    // Runs wait for an open turn; other commands must be retried.
    turn_open: sessionBusyError,
    turn_not_open: DEFECT,
    turn_of_another_run: DEFECT,
  },
});
