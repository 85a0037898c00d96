import { recordAudit } from '../../../shared/audit/commands.ts';
import { describeSession } from '../../../shared/sessions/describeSession.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { findSessions } from '../../../shared/search/searchSessions.ts';
import { readSessionEvents } from '../../../shared/sessions/queries.ts';
import { readTranscriptAt } from '../../../shared/sessions/history/sessionAt.ts';
import { readTranscript } from '../../../shared/sessions/history/transcript.ts';
import type { RecordedEvent } from '../../../shared/eventlog/event.ts';
import { sessionStream } from '../../../shared/eventlog/streams.ts';
import type { ListedSession } from '../../../shared/search/turnIndex.ts';
import type { TurnRow } from '../../../shared/readModels/tables.ts';
import { untilClosed } from '../http/connection/clientDisconnect.ts';
import { MAKING_BYTES, pageBody, type Rows } from '../http/responses/listResponse.ts';
import {
  presentEvent,
  presentListed,
  presentSession,
  presentTranscript,
  presentTurn,
} from './presenter.ts';
import { SESSION_ERRORS, SHARED_SESSION_ERRORS } from '../http/errors/streamErrorCodes.ts';
import { defineRoute } from '../http/route.ts';
import { sessionFilter } from './parseSessionFilter.ts';
import { SessionEvents } from '../feed/recordedEventSchemas.ts';
import { CommonQuery } from '../openapi/commonSchemas.ts';
import { DescribeSessionBody, SessionListQuery } from './descriptionSchemas.ts';
import {
  Session,
  SessionEventsQuery,
  SessionList,
  Transcript,
  TranscriptQuery,
} from './schemas.ts';

const DEFAULT_LIMIT = 100;

const SESSIONS: Rows<ListedSession> = {
  around: [],
  present: presentListed,
  cursorOf: ({ session_id }) => session_id,
};
const EVENTS: Rows<RecordedEvent> = {
  around: [],
  present: presentEvent,
  cursorOf: ({ revision }) => String(revision),
};

/** A query's page as the queries take it: without members that are undefined. */
export const pageFrom = <Cursor>({
  limit = DEFAULT_LIMIT,
  after,
}: {
  limit?: number;
  after?: Cursor;
}): { limit: number; bytes: number; after?: Cursor } => ({
  limit,
  bytes: LIMITS.http.pageBytes,
  ...(after === undefined ? {} : { after }),
});

const listSessionsRoute = defineRoute({
  method: 'get',
  path: '/v1/sessions',
  operationId: 'listSessions',
  summary: "Lists the account's sessions, newest first",
  description:
    'Those to which all of the filters apply. With `q`, each names the first turns that have the words, as `matches`. With `order=oldest` the oldest come first; pages go on in the order that they began with.',
  access: 'sessions:read',
  query: SessionListQuery,
  data: SessionList,
  errors: [],
  holds: MAKING_BYTES,
  handle: async (api, { actor, query }, ctx) => {
    const asked = { ...pageFrom(query), ...sessionFilter(query) };
    const signal = query.q === undefined ? undefined : untilClosed(ctx.res);
    const page = await findSessions(api, actor.account_id, asked, signal);
    return { page: (to) => pageBody(page, SESSIONS, to) };
  },
});

const getSessionRoute = defineRoute({
  method: 'get',
  path: '/v1/sessions/{sessionId}',
  operationId: 'getSession',
  summary: 'Returns the transcript of a session, oldest turn first',
  description:
    'With `at_turn`, as it stood when that turn had ended; title and labels are those of now.',
  access: 'sessions:read',
  query: TranscriptQuery,
  data: Transcript,
  errors: ['turn_not_found', ...SHARED_SESSION_ERRORS],
  holds: MAKING_BYTES,
  handle: async (api, { actor: { account_id }, params, query }) => {
    const session_id = params['sessionId']!;
    const { at_turn: turn } = query;
    const page = pageFrom(query);
    const { session, turns, origin_erased, at } =
      turn === undefined
        ? { ...(await readTranscript(api, account_id, session_id, page)), at: undefined }
        : await readTranscriptAt(api, { account_id, session_id, turn }, page);
    const rows = {
      around: presentTranscript(session, origin_erased, at),
      present: (row: TurnRow) => presentTurn(session.session_id, row),
      cursorOf: (row: TurnRow) => String(row.turn),
    };
    return { page: (to) => pageBody(turns, rows, to) };
  },
});

const describeSessionRoute = defineRoute({
  method: 'patch',
  path: '/v1/sessions/{sessionId}',
  operationId: 'describeSession',
  summary: 'Gives a session a title and labels',
  description:
    'A JSON merge patch (RFC 7396): what is left out stays, null takes the title or a label away. It waits for a run of the session, as another run does.',
  access: 'agents:run',
  query: CommonQuery,
  body: DescribeSessionBody,
  data: Session,
  errors: ['session_busy', ...SESSION_ERRORS],
  handle: async (api, { actor, params, body }) => ({
    data: presentSession(await describeSession(api, actor, params['sessionId']!, body)),
  }),
});

/** Which events of a session were read. */
function revisionsOf(events: readonly RecordedEvent[]): { detail?: string } {
  const [first, last] = [events[0], events.at(-1)];
  return first && last ? { detail: `revisions ${first.revision} to ${last.revision}` } : {};
}

const listSessionEventsRoute = defineRoute({
  method: 'get',
  path: '/v1/sessions/{sessionId}/events',
  operationId: 'listSessionEvents',
  summary: 'Returns the recorded events of a session with metadata and hashes, oldest first',
  description:
    'Each event’s `hash` covers the event and the `prev_hash` before it, so that anybody can verify the chain offline; of a text it covers the commitment, `{"sha256": …}`. Each page that is read is recorded in the account’s audit before it is answered.',
  access: 'sessions:read',
  query: SessionEventsQuery,
  data: SessionEvents,
  errors: SESSION_ERRORS,
  holds: MAKING_BYTES,
  handle: async (api, { actor, params, query }) => {
    const sessionId = params['sessionId']!;
    const page = await readSessionEvents(api, actor.account_id, sessionId, pageFrom(query));
    await recordAudit(api, actor, {
      action: 'read',
      subject: sessionStream(sessionId),
      ...revisionsOf(page.rows),
    });
    return { page: (to) => pageBody(page, EVENTS, to) };
  },
});

export const sessionRoutes = [
  listSessionsRoute,
  getSessionRoute,
  describeSessionRoute,
  listSessionEventsRoute,
];
