import {
  listSessions,
  readSessionEvents,
  readTranscript,
} from '../../../shared/queries/sessions.ts';
import { presentEvent, presentSession, presentTranscript } from '../presenters/session.ts';
import { defineRoute } from '../route.ts';
import { SessionEvents } from '../schemas/events.ts';
import {
  SessionEventsQuery,
  SessionList,
  SessionListQuery,
  Transcript,
  TranscriptQuery,
} from '../schemas/sessions.ts';

const DEFAULT_LIMIT = 100;

/** A query's page as the queries take it: without members that are undefined. */
const pageFrom = <Cursor>({
  limit = DEFAULT_LIMIT,
  after,
}: {
  limit?: number;
  after?: Cursor;
}): { limit: number; after?: Cursor } => ({
  limit,
  ...(after === undefined ? {} : { after }),
});

const listSessionsRoute = defineRoute({
  method: 'get',
  path: '/v1/sessions',
  operationId: 'listSessions',
  summary: "Lists the account's sessions, newest first",
  access: 'sessions:read',
  query: SessionListQuery,
  data: SessionList,
  errors: [],
  handle: async ({ readModels }, { actor, query }) => {
    const filter = {
      ...pageFrom(query),
      ...(query.agent_id === undefined ? {} : { agent_id: query.agent_id }),
    };
    const { rows, next } = await listSessions(readModels, actor.account_id, filter);
    return { data: rows.map(presentSession), next };
  },
});

const getSessionRoute = defineRoute({
  method: 'get',
  path: '/v1/sessions/{sessionId}',
  operationId: 'getSession',
  summary: 'Returns the transcript of a session, oldest turn first',
  access: 'sessions:read',
  query: TranscriptQuery,
  data: Transcript,
  errors: ['session_not_found'],
  handle: async ({ readModels }, { actor, params, query }) => {
    const { session, turns } = await readTranscript(
      readModels,
      actor.account_id,
      params['sessionId']!,
      pageFrom(query),
    );
    return { data: presentTranscript(session, turns.rows), next: turns.next };
  },
});

const listSessionEventsRoute = defineRoute({
  method: 'get',
  path: '/v1/sessions/{sessionId}/events',
  operationId: 'listSessionEvents',
  summary: 'Returns the recorded events of a session with metadata and hashes, oldest first',
  description:
    'Each event’s `hash` covers the event and the `prev_hash` before it, so that anybody can verify the chain offline.',
  access: 'sessions:read',
  query: SessionEventsQuery,
  data: SessionEvents,
  errors: ['session_not_found', 'stream_damaged', 'release_too_old'],
  handle: async (api, { actor, params, query }) => {
    const { rows, next } = await readSessionEvents(
      api,
      actor.account_id,
      params['sessionId']!,
      pageFrom(query),
    );
    return { data: rows.map(presentEvent), next };
  },
});

export const sessionRoutes = [listSessionsRoute, getSessionRoute, listSessionEventsRoute];
