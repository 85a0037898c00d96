import { recordAudit } from '../../../shared/audit/commands.ts';
import { seesReasoning } from '../../../shared/chatTokens/chatAccess.ts';
import { describeSession } from '../../../shared/sessions/describeSession.ts';
import { searchSessions } from '../../../shared/search/searchSessions.ts';
import { readSessionEvents } from '../../../shared/sessions/queries.ts';
import { readTranscriptAt } from '../../../shared/sessions/history/sessionAt.ts';
import { readTranscript } from '../../../shared/sessions/history/transcript.ts';
import type { RecordedEvent } from '../../../shared/eventlog/event.ts';
import { accountStream, sessionStream } from '../../../shared/eventlog/streams.ts';
import { KIB } from '../../../shared/lib/units.ts';
import { LIMITS } from '../../../shared/limits.ts';
import type { ListedSession } from '../../../shared/search/turnIndex.ts';
import type { SessionRow, TurnRow } from '../../../shared/readModels/tables.ts';
import { responseClosedSignal } from '../http/connection/clientDisconnect.ts';
import {
  PAGE_BUFFER_BYTES,
  renderPage,
  type ListFormat,
  parsePageQuery,
} from '../http/responses/listResponse.ts';
import {
  presentEvent,
  presentListed,
  presentSession,
  presentTranscript,
  presentTurn,
} from './presenter.ts';
import { SESSION_ERROR_CODES, SHARED_SESSION_ERROR_CODES } from '../http/errors/errorResponses.ts';
import { createRevisionEtag, parseIfMatch } from '../http/responses/etag.ts';
import { defineRoute } from '../http/route.ts';
import { parseSessionFilter } from './parseSessionFilter.ts';
import { SessionEvents } from './eventSchemas.ts';
import { CommonQuery, SessionId } from '../openapi/commonSchemas.ts';
import { DescribeSessionBody, SessionListQuery } from './descriptionSchemas.ts';
import {
  IndexLag,
  Session,
  SessionEventsQuery,
  SessionList,
  Transcript,
  TranscriptQuery,
  ForkBody,
  TurnNumber,
} from './schemas.ts';
import { prepareFork, forkSession } from '../../../shared/sessions/forkSession.ts';
import { sessionInPath, turnRoutes } from './turnRoutes.ts';
import { DEFECT } from '../http/errors/errorPresenter.ts';
import { defineFeature } from '../http/feature.ts';
import { sessionOfAgentNotFoundError } from '../../../shared/runs/queueing/loadSessionForRun.ts';
import { sessionErasedError } from '../../../shared/erasure/errors.ts';

/** Limits the searches of an account that wait for the index, each of which looks at it repeatedly. */
const SEARCH_WAIT_BYTES = 256 * KIB;
const SESSION_LIST: ListFormat<ListedSession> = {
  emptyData: [],
  present: presentListed,
  cursorOf: ({ session_id }) => session_id,
};
const revisionEtag = createRevisionEtag(Session);
const sessionEtag = ({ session_id, revision, updated_at }: SessionRow): string =>
  revisionEtag({ id: session_id, revision, updated_at });
const EVENT_LIST: ListFormat<RecordedEvent> = {
  emptyData: [],
  present: presentEvent,
  cursorOf: ({ revision }) => String(revision),
};

const listSessionsRoute = defineRoute({
  method: 'get',
  path: '/v1/sessions',
  operationId: 'listSessions',
  summary: "Lists the account's sessions, newest first",
  description:
    'Sessions that match all filters. With `q`, `matches` lists the first turns that contain the words. With `order=oldest`, the oldest come first; later pages keep the order of the first.',
  access: 'sessions:read',
  query: SessionListQuery,
  data: SessionList,
  envelope: { index: IndexLag },
  errors: ['quota_exceeded'],
  bufferBytes: PAGE_BUFFER_BYTES,
  waitBytes: SEARCH_WAIT_BYTES,
  handle: async (api, { actor, query, acquireBuffer }, ctx) => {
    const search = { ...parsePageQuery(query), ...parseSessionFilter(query) };
    const signal = responseClosedSignal(ctx.res);
    const source = { ...api, beforeRead: acquireBuffer };
    const { index, ...page } = await searchSessions(source, actor.account_id, search, signal);
    if (query.q !== undefined)
      await api.readAudit.record(api, actor, 'transcripts', accountStream(actor.account_id));
    const format = { ...SESSION_LIST, envelope: index && { index } };
    return { page: (to) => renderPage(page, format, to) };
  },
});

const getSessionRoute = defineRoute({
  method: 'get',
  path: '/v1/sessions/{sessionId}',
  operationId: 'getSession',
  summary: 'Returns the transcript of a session, oldest turn first',
  description: 'With `at_turn`, as of the end of that turn; title and labels are current.',
  access: 'sessions:read',
  chatTarget: sessionInPath,
  query: TranscriptQuery,
  data: Transcript,
  returnsEtag: true,
  errors: ['quota_exceeded', 'turn_not_found', ...SHARED_SESSION_ERROR_CODES],
  bufferBytes: PAGE_BUFFER_BYTES,
  handle: async (api, { actor, params, query }, ctx) => {
    const { account_id } = actor;
    const session_id = params['sessionId']!;
    const { at_turn: turn } = query;
    const page = parsePageQuery(query);
    const { session, turns, origin_erased, at } =
      turn === undefined
        ? { ...(await readTranscript(api, account_id, session_id, page)), at: undefined }
        : await readTranscriptAt(api, { account_id, session_id, turn }, page);
    await api.readAudit.record(api, actor, 'transcripts', sessionStream(session_id));
    ctx.set('etag', sessionEtag(session));
    const reasoning = query.reasoning && seesReasoning(actor);
    const rows = {
      emptyData: presentTranscript(session, origin_erased, at),
      present: (row: TurnRow) => presentTurn(session.session_id, row, { reasoning }),
      cursorOf: (row: TurnRow) => String(row.turn),
    };
    return { page: (to) => renderPage(turns, rows, to) };
  },
});

const describeSessionRoute = defineRoute({
  method: 'patch',
  path: '/v1/sessions/{sessionId}',
  operationId: 'describeSession',
  summary: 'Sets the title and labels of a session',
  description:
    'A JSON merge patch (RFC 7396): omitted fields stay, null removes the title or a label. It waits for a running turn of the session, as a run does. With `If-Match`, only if the session is still at that revision.',
  access: 'agents:run',
  query: CommonQuery,
  body: DescribeSessionBody,
  data: Session,
  ifMatch: true,
  returnsEtag: true,
  errors: ['session_busy', 'precondition_failed', ...SESSION_ERROR_CODES],
  handle: async (api, { actor, params, body }, ctx) => {
    const target = { session_id: params['sessionId']!, expected: parseIfMatch(ctx) };
    const session = await describeSession(api, actor, target, body);
    ctx.set('etag', sessionEtag(session));
    return { data: presentSession(session) };
  },
});

/** The detail of the audit record: the revisions that were read. */
function describeRevisions(events: readonly RecordedEvent[]): { detail?: string } {
  const [first, last] = [events[0], events.at(-1)];
  return first && last ? { detail: `revisions ${first.revision} to ${last.revision}` } : {};
}

const listSessionEventsRoute = defineRoute({
  method: 'get',
  path: '/v1/sessions/{sessionId}/events',
  operationId: 'listSessionEvents',
  summary: 'Returns the recorded events of a session with metadata and hashes, oldest first',
  description:
    'Each event’s `hash` covers the event and the `prev_hash` before it, so that the chain can be verified offline; of a text it covers the commitment, `{"sha256": …}`. Each page is recorded in the account’s audit before it is sent.',
  access: 'sessions:read',
  query: SessionEventsQuery,
  data: SessionEvents,
  errors: ['quota_exceeded', ...SESSION_ERROR_CODES],
  bufferBytes: PAGE_BUFFER_BYTES,
  handle: async (api, { actor, params, query }) => {
    const sessionId = params['sessionId']!;
    const page = await readSessionEvents(api, actor.account_id, sessionId, parsePageQuery(query));
    await recordAudit(api, actor, {
      action: 'read',
      subject: sessionStream(sessionId),
      ...describeRevisions(page.rows),
    });
    return { page: (to) => renderPage(page, EVENT_LIST, to) };
  },
});

const forkSessionRoute = defineRoute({
  method: 'post',
  path: '/v1/sessions/{sessionId}/fork',
  operationId: 'forkSession',
  summary: 'Forks a session after one of its turns',
  description:
    'The new session shares the turns up to `at_turn`: nothing is copied, and its first own turn is the next one. Shared turns are erased with the session that recorded them.',
  access: 'agents:run',
  query: CommonQuery,
  body: ForkBody,
  data: Session,
  errors: SHARED_SESSION_ERROR_CODES,
  // A session may have its own instruction.
  bufferBytes: LIMITS.http.pageBytes,
  idempotency: {
    prepare: (api, { actor, params, body }) =>
      prepareFork(api, actor, { session_id: params['sessionId']!, ...body }),
    reserve: ({ ids }) => ({ id: ids.typeId('session') }),
  },
  returnsLocation: true,
  returnsEtag: true,
  handle: async (api, { actor, params, body, claim }, ctx) => {
    const input = { session_id: params['sessionId']!, ...body };
    const session = await forkSession(api, actor, input, claim);
    ctx.set('location', `/v1/sessions/${session.session_id}`);
    ctx.set('etag', sessionEtag(session));
    return { data: presentSession(session) };
  },
});

export const sessionsFeature = defineFeature({
  routes: [
    listSessionsRoute,
    getSessionRoute,
    describeSessionRoute,
    listSessionEventsRoute,
    forkSessionRoute,
    ...turnRoutes,
  ],
  tags: { sessions: 'Conversations: transcripts, and the events that they are made of' },
  pathParameters: { sessionId: SessionId, turn: TurnNumber },
  errors: {
    session_not_found: {
      status: 404,
      description: 'The account, or the agent, has no such session; nothing was recorded',
    },
    turn_not_found: {
      status: 404,
      description: 'The session has no such turn, or it has not begun',
    },
    session_busy: {
      status: 409,
      description: 'Another run held the session for longer than the wait limit',
    },
    session_erased: { status: 410, description: 'The texts of the session were erased' },
    origin_erased: {
      status: 410,
      description:
        'The session is a fork, and the session that it was forked from was erased; the request needs turns that it shared',
    },
  },
  rejections: {
    session_exists: DEFECT,
    session_missing: sessionOfAgentNotFoundError,
    session_erased: sessionErasedError,
    // Other accounts must not learn that the session exists.
    session_of_another_agent: sessionOfAgentNotFoundError,
    session_moved: DEFECT,
  },
});
