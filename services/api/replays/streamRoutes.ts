import { Type } from 'typebox';
import type { Context } from 'koa';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { followReplay, type ReplayUpdate } from '../../../shared/replays/followReplay.ts';
import { findOwnReplay } from '../../../shared/replays/queries.ts';
import { sendEventStream, type SseEvent } from '../http/responses/sse.ts';
import { createKeyCheck, untilRevoked } from '../http/access/keyRevocation.ts';
import { presentReplay } from './presenter.ts';
import { STREAM_ERROR_CODES } from '../http/errors/streamErrorCodes.ts';
import { defineRoute } from '../http/route.ts';
import { CommonQuery } from '../openapi/commonSchemas.ts';
import { acquireStream } from '../sessions/turnSse.ts';

const REVISION = '^(?:0|[1-9][0-9]{0,8})$';
const MESSAGE = 'must be the id of an event of this replay, as its stream gave it';

/** The last revision that the client has received; -1 for none. */
function parseLastEventId(ctx: Context): number {
  const id = ctx.get('last-event-id');
  if (id === '') return -1;
  if (new RegExp(REVISION).test(id)) return Number(id);
  throw new TurnlogError('invalid_request', `The header Last-Event-ID ${MESSAGE}.`, {
    details: { 'Last-Event-ID': { message: MESSAGE, path: 'header/Last-Event-ID' } },
  });
}

function formatUpdate(update: ReplayUpdate): SseEvent {
  const id = String(update.revision);
  if (update.type === 'session_ended') {
    const { session_id, status, code = null } = update.end;
    return { id, event: 'session.ended', data: JSON.stringify({ session_id, status, code }) };
  }
  return { id, event: `replay.${update.type}`, data: JSON.stringify(presentReplay(update.row)) };
}

async function* formatUpdates(updates: AsyncIterable<ReplayUpdate>): AsyncGenerator<SseEvent> {
  for await (const update of updates) yield formatUpdate(update);
}

export const streamReplayRoute = defineRoute({
  method: 'get',
  path: '/v1/replays/{replayId}/stream',
  operationId: 'streamReplay',
  summary: 'Streams the progress of a replay',
  description:
    '`session.ended` for each session whose replay has ended; `replay.progress` at most once a second; and `replay.ended` as the last event. The latter two contain the replay as in the list. With `Last-Event-ID` the stream continues after that event, from any replica. A request with the id of the last event gets 204, which ends an `EventSource`.',
  access: 'sessions:read',
  query: CommonQuery,
  data: Type.Unknown(),
  media: 'text/event-stream',
  events: { description: 'The events of the replay', ends: true },
  headers: {
    'Last-Event-ID': Type.String({
      pattern: REVISION,
      description: 'The id of the last event that the client has',
      examples: ['12'],
    }),
  },
  errors: ['replay_not_found', ...STREAM_ERROR_CODES],
  handle: async (api, { actor, params }, ctx) => {
    const { account_id } = actor;
    const row = await findOwnReplay(api, account_id, params['replayId']!);
    const after = parseLastEventId(ctx);
    if (row.status !== 'running' && after >= row.revision) {
      ctx.status = 204;
      return undefined;
    }
    acquireStream(api, account_id, ctx);
    sendEventStream(ctx, (disconnected) => {
      const signal = AbortSignal.any([disconnected, api.stopping]);
      const replay = { account_id, replay_id: row.replay_id, after };
      const events = formatUpdates(followReplay(api, replay, signal));
      return untilRevoked(events, createKeyCheck(api, actor));
    });
    return undefined;
  },
});
