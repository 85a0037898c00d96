import { addAbortListener } from 'node:events';
import { waitUntilTurnVisible } from '../../../shared/commandHandling/context.ts';
import type { Position } from '../../../shared/ports/eventStore.ts';
import { sessionStream } from '../../../shared/eventlog/streams.ts';
import { abortable } from '../../../shared/lib/concurrency/abortable.ts';
import { seesReasoning } from '../../../shared/chatTokens/chatAccess.ts';
import { awaitTurnEnd } from '../../../shared/runs/queueing/awaitTurnEnd.ts';
import { cancelTurn, reserveCancellation } from '../../../shared/runs/cancelTurn.ts';
import { waitToBegin } from '../../../shared/lib/concurrency/pacedSteps.ts';
import { turnNotFoundError } from '../../../shared/sessions/turns/turn.ts';
import { readRequests, type RebuiltRequest } from '../../../shared/sessions/turns/turnRequests.ts';
import { readWithinGrowingMemory } from '../http/responses/growingMemory.ts';
import { wantsPretty } from '../http/responses/envelope.ts';
import { clientDisconnectError, onResponseClosed } from '../http/connection/clientDisconnect.ts';
import {
  PAGE_BUFFER_BYTES,
  parsePageQuery,
  renderOne,
  renderPage,
  type ListFormat,
} from '../http/responses/listResponse.ts';
import { readPreferences, setPreferenceApplied } from '../http/preferHeader.ts';
import { presentRequest, presentTurn } from './presenter.ts';
import { SHARED_SESSION_ERROR_CODES } from '../http/errors/errorResponses.ts';
import { defineRoute } from '../http/route.ts';
import { CommonQuery } from '../openapi/commonSchemas.ts';
import {
  Turn,
  TurnQuery,
  TurnRequests,
  TurnRequestsQuery,
  CancelBody,
  CancelledTurn,
  TURN_NUMBER,
} from './schemas.ts';
import { Type } from '../../../shared/domain/jsonSchema.ts';
import { START_OF_OUTPUT } from '../../../shared/sessions/turns/turnOutputPosition.ts';
import { sendEventStream } from '../http/responses/sse.ts';
import { createKeyCheck } from '../http/access/keyRevocation.ts';
import { MEMORY_PER_EVENT_BYTE, readTurnRecord, readTurnWithinMemory } from './turnMemory.ts';
import { acquireStream, readTurnPosition, turnSse } from './turnSse.ts';
import { TurnEventId, TurnStreamEvent } from './turnStreamSchemas.ts';

const NUMBER = new RegExp(TURN_NUMBER);

/** The session and the turn of a path. Throws `turn_not_found` for an invalid number. */
function parseTurnPath({ sessionId, turn }: Readonly<Record<string, string>>): {
  session_id: string;
  turn: number;
} {
  if (!NUMBER.test(turn!)) throw turnNotFoundError();
  return { session_id: sessionId!, turn: Number(turn) };
}

/** The target that a chat token must cover to read or cancel turns. */
export const sessionInPath = ({ params }: { params: Readonly<Record<string, string>> }) => ({
  session_id: params['sessionId'],
});

const streamTurnRoute = defineRoute({
  method: 'get',
  path: '/v1/sessions/{sessionId}/turns/{turn}/stream',
  operationId: 'streamTurn',
  summary: 'Streams the output of a turn, while it runs and afterwards',
  description:
    'The events are those of a streamed run: `reasoning.delta` where the model sends its reasoning, `output.delta`, `tool.called`, and the end. With `Last-Event-ID` the stream continues after that event, from any replica, without gaps or duplicates. Output that is read from the record, not live, has `"recorded": true`. A request with the id of the last event gets 204, which ends an `EventSource`.',
  access: 'sessions:read',
  chatTarget: sessionInPath,
  query: CommonQuery,
  data: Type.Unknown(),
  media: 'text/event-stream',
  events: { schema: TurnStreamEvent, description: 'The events of the turn', ends: true },
  headers: {
    'Last-Event-ID': TurnEventId,
  },
  errors: ['quota_exceeded', 'turn_not_found', ...SHARED_SESSION_ERROR_CODES],
  handle: async (api, { actor, params }, ctx) => {
    const { account_id } = actor;
    const session_id = params['sessionId']!;
    const number = params['turn']!;
    // An invalid number reads the session first: its errors come before `turn_not_found`.
    const turn = NUMBER.test(number) ? Number(number) : Infinity;
    const subject = { account_id, session_id, turn };
    const live = api.runState.liveTurns.find(session_id, turn);
    const isLive = live?.account_id === account_id && live.isBuffered();
    const first = isLive ? undefined : await readTurnRecord(api, subject, ctx);
    if (first) onResponseClosed(ctx.res, first.done);
    await api.readAudit.record(api, actor, 'transcripts', sessionStream(session_id));
    const after = readTurnPosition(ctx, turn);
    if (after === 'end' && first?.turn.outcome) {
      ctx.status = 204;
      return undefined;
    }
    acquireStream(api, account_id, ctx);
    // Following reads an open turn again, since it may have progressed.
    const ended = first?.turn.outcome && first;
    if (!ended) first?.done();
    const position = after === 'end' || after === undefined ? START_OF_OUTPUT : after;
    const reasoning = seesReasoning(actor);
    const isFromStart = after === undefined;
    const following = { subject, after: position, isFromStart, reasoning, first: ended };
    sendEventStream(ctx, createKeyCheck(api, actor), (signal) =>
      turnSse(api, following, ctx, signal),
    );
    return undefined;
  },
});

const getTurnRoute = defineRoute({
  method: 'get',
  path: '/v1/sessions/{sessionId}/turns/{turn}',
  operationId: 'getTurn',
  summary: 'Returns a turn as the transcript shows it',
  description:
    'With `Prefer: wait=N` it responds when the turn has ended, or after N seconds (at most 60) with `status` `running`. It responds as soon as the end of the turn is recorded, by any process, and other reads show it; `X-Turnlog-Visible` is `false` if they may not yet.',
  access: 'sessions:read',
  chatTarget: sessionInPath,
  query: TurnQuery,
  prefer: '`wait=N`: respond when the turn has ended, after N seconds at the latest',
  data: Turn,
  errors: ['quota_exceeded', 'turn_not_found', ...SHARED_SESSION_ERROR_CODES],
  handle: async (api, { actor, params, query }, ctx) => {
    const { account_id } = actor;
    const { session_id, turn } = parseTurnPath(params);
    const subject = { account_id, session_id, turn };
    const { wait } = readPreferences(ctx);
    setPreferenceApplied(ctx, { respondAsync: false, wait });
    const ended = new AbortController();
    const stopWatching = onResponseClosed(ctx.res, () => ended.abort(clientDisconnectError()));
    using _stopping = addAbortListener(api.stopping, () => ended.abort());
    const onVisibilityTimeout = () => ctx.set('x-turnlog-visible', 'false');
    /** The turn is read from the log, which is ahead of the read models. */
    const waitUntilEndVisible = (end: Position, remainingMs: number): Promise<void> => {
      const visibilityWaitMs = Math.min(remainingMs, api.visibilityWaitMs);
      const context = { ...api, visibilityWaitMs, onVisibilityTimeout };
      const write = { position: end, account_id, session_id };
      return abortable(waitUntilTurnVisible(context, write), ended.signal).catch(
        onVisibilityTimeout,
      );
    };
    try {
      const rendered = await awaitTurnEnd(api.runState, {
        account_id,
        waitMs: (wait ?? 0) * 1_000,
        signal: ended.signal,
        respond: (remainingMs) =>
          readTurnWithinMemory(api, subject, ctx, async (row) => {
            const { turn: number, revision, end_position: end } = row;
            if (remainingMs() > 0 && row.status === 'running')
              return { running: { session_id: row.session_id, turn: number, revision } };
            if (wait !== undefined && end !== null) await waitUntilEndVisible(end, remainingMs());
            await api.readAudit.record(api, actor, 'transcripts', sessionStream(session_id));
            // Reads that wait for the same event, key or audit entry would otherwise continue all at once.
            await waitToBegin(account_id);
            const to = { account_id, pretty: wantsPretty(ctx) };
            const reasoning = query.reasoning && seesReasoning(actor);
            return { response: await renderOne(presentTurn(session_id, row, { reasoning }), to) };
          }),
      });
      return { page: () => Promise.resolve(rendered) };
    } finally {
      stopWatching();
    }
  },
});

const cancelRoute = defineRoute({
  method: 'post',
  path: '/v1/sessions/{sessionId}/cancel',
  operationId: 'cancelTurn',
  summary: 'Cancels the open turn of a session',
  description:
    'The response follows the recorded end of the turn: `interrupted`, with the reason `cancelled`. The run stops its model and tools within a second, in any process, and clients that wait for it get 503 `turn_interrupted`. A turn that has ended is not changed; repeating the request gets the same response. The body is optional.',
  access: 'agents:run',
  chatTarget: sessionInPath,
  query: CommonQuery,
  body: CancelBody,
  bodyOptional: true,
  data: CancelledTurn,
  errors: ['turn_not_found', 'session_busy', ...SHARED_SESSION_ERROR_CODES],
  idempotency: {
    reserve: (api, { actor, params, body }) =>
      reserveCancellation(api, actor, { session_id: params['sessionId']!, ...body }),
  },
  handle: async (api, { actor, params, body, claim }) => ({
    data: await cancelTurn(api, actor, {
      session_id: params['sessionId']!,
      ...body,
      ...(claim && { claim }),
    }),
  }),
});

const REQUEST_LIST: ListFormat<RebuiltRequest> = {
  emptyData: [],
  present: presentRequest,
  cursorOf: ({ number }) => String(number),
};

const listTurnRequestsRoute = defineRoute({
  method: 'get',
  path: '/v1/sessions/{sessionId}/turns/{turn}/requests',
  operationId: 'listTurnRequests',
  summary: 'Rebuilds the model requests of a turn from events',
  description:
    'One request for each answered model call, in order, including a compaction right before the turn. `matches` says whether its hash equals the recorded hash of the request that was sent. `docs/replay.md` describes the rules.',
  access: 'sessions:read',
  query: TurnRequestsQuery,
  data: TurnRequests,
  errors: ['quota_exceeded', 'turn_not_found', 'agent_erased', ...SHARED_SESSION_ERROR_CODES],
  handle: async (api, { actor, params, query }, ctx) => {
    const { account_id } = actor;
    const turn = { account_id, ...parseTurnPath(params) };
    const target = { account_id, response: ctx.res, bytes: PAGE_BUFFER_BYTES };
    const rendered = await readWithinGrowingMemory(api, target, async (grow) => {
      const hold = (bytes: number): void => grow(PAGE_BUFFER_BYTES + MEMORY_PER_EVENT_BYTE * bytes);
      const page = await readRequests(api, turn, { ...parsePageQuery(query), hold });
      await api.readAudit.record(api, actor, 'requests', sessionStream(turn.session_id));
      return renderPage(page, REQUEST_LIST, { account_id, pretty: wantsPretty(ctx) });
    });
    return { page: () => Promise.resolve(rendered) };
  },
});

export const turnRoutes = [streamTurnRoute, getTurnRoute, cancelRoute, listTurnRequestsRoute];
