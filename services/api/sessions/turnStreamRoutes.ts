import { Type } from 'typebox';
import type { Context } from 'koa';
import {
  START_OF_OUTPUT,
  TURN_POSITION_PATTERN,
  parseTurnPosition,
  type TurnOutputPosition,
} from '../../../shared/sessions/turns/turnOutputPosition.ts';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { onResponseClosed } from '../http/connection/clientDisconnect.ts';
import { sendEventStream } from '../http/responses/sse.ts';
import { createKeyCheck, untilRevoked } from '../http/access/keyRevocation.ts';
import { SHARED_SESSION_ERROR_CODES } from '../http/errors/streamErrorCodes.ts';
import { defineRoute } from '../http/route.ts';
import { CommonQuery } from '../openapi/commonSchemas.ts';
import { TURN_NUMBER } from './turnSchemas.ts';
import { acquireStream, readTurnRecord, startedEvent, turnSse } from './turnSse.ts';

const MESSAGE = 'must be the id of an event of this turn, as its stream gave it';

/** The last position that the client has received. */
function parseLastEventId(ctx: Context, turn: number): TurnOutputPosition | 'end' | undefined {
  const id = ctx.get('last-event-id');
  if (id === '') return undefined;
  const position = parseTurnPosition(id, turn);
  if (position !== undefined) return position;
  throw new TurnlogError('invalid_request', `The header Last-Event-ID ${MESSAGE}.`, {
    details: { 'Last-Event-ID': { message: MESSAGE, path: 'header/Last-Event-ID' } },
  });
}

const NUMBER = new RegExp(TURN_NUMBER);

const streamTurnRoute = defineRoute({
  method: 'get',
  path: '/v1/sessions/{sessionId}/turns/{turn}/stream',
  operationId: 'streamTurn',
  summary: 'Streams what a turn puts out, while it runs and for ever after it',
  description:
    'Events are those of a run that is streamed. With `Last-Event-ID` it goes on behind that event, whichever replica has sent it: nothing is missing and nothing comes twice. What was taken from the record, and not as it came, has `"recorded": true`. Once the end of the turn was sent, its id is answered with 204, which ends an `EventSource`.',
  access: 'sessions:read',
  query: CommonQuery,
  data: Type.Unknown(),
  media: 'text/event-stream',
  events: { description: 'The events of the turn', ends: true },
  headers: {
    'Last-Event-ID': Type.String({
      pattern: TURN_POSITION_PATTERN,
      description: 'The id of the last event that the client has',
      examples: ['1-1-42'],
    }),
  },
  errors: ['turn_not_found', ...SHARED_SESSION_ERROR_CODES],
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
    const after = parseLastEventId(ctx, turn);
    if (after === 'end' && first?.turn.outcome) {
      ctx.status = 204;
      return undefined;
    }
    acquireStream(api, account_id, ctx);
    // Following reads an open turn again, since it may have progressed.
    const ended = first?.turn.outcome && first;
    if (!ended) first?.done();
    const position = after === 'end' || after === undefined ? START_OF_OUTPUT : after;
    sendEventStream(ctx, async function* (signal) {
      if (after === undefined) yield startedEvent(subject);
      const events = turnSse(api, { subject, after: position, first: ended }, ctx, signal);
      yield* untilRevoked(events, createKeyCheck(api, actor));
    });
    return undefined;
  },
});

export const turnStreamRoutes = [streamTurnRoute];
