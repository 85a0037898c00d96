import type { Static } from 'typebox';
import { Type } from '../../../shared/domain/jsonSchema.ts';
import {
  cancelReplay,
  resolveReplayInput,
  startReplay,
  type ReplayInput,
} from '../../../shared/replays/commands.ts';
import { withReadMemory } from '../../../shared/eventlog/reading/readMemory.ts';
import { replayStream } from '../../../shared/eventlog/streams.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { withDiffs, type ComparedOutputs } from '../../../shared/replays/comparison/diffs.ts';
import { replayNotFoundError, sessionOfReplayError } from '../../../shared/replays/errors.ts';
import { findOwnReplay, readReplaySettings } from '../../../shared/replays/queries.ts';
import type { ReplayRow, ReplaySessionRow } from '../../../shared/readModels/tables.ts';
import { followReplay, type ReplayUpdate } from '../../../shared/replays/followReplay.ts';
import { requireTurnsOf, serializeChecks } from '../../../shared/replays/comparison/checks.ts';
import { findSessionsToReplay } from '../../../shared/replays/turns/sessionsToReplay.ts';
import {
  PAGE_BUFFER_BYTES,
  renderPage,
  type ListFormat,
  parsePageQuery,
} from '../http/responses/listResponse.ts';
import { SESSION_ERROR_CODES, STREAM_ERROR_CODES } from '../http/errors/errorResponses.ts';
import { DEFECT } from '../http/errors/errorPresenter.ts';
import { defineFeature } from '../http/feature.ts';
import { defineRoute } from '../http/route.ts';
import { CommonQuery, ReplayId } from '../openapi/commonSchemas.ts';
import { createRevisionEtag } from '../http/responses/etag.ts';
import { readLastEventId } from '../http/requestHeaders.ts';
import { sendEventStream, type SseEvent } from '../http/responses/sse.ts';
import { createKeyCheck } from '../http/access/keyRevocation.ts';
import { acquireStream } from '../sessions/turnSse.ts';
import type { RouteContext } from '../context.ts';
import { parseSessionFilter } from '../sessions/parseSessionFilter.ts';
import {
  presentReplay,
  presentReplaySession,
  presentReplaySettings,
  presentReplayTurn,
} from './presenter.ts';
import {
  Replay,
  ReplayList,
  ReplayListQuery,
  CancelReplayBody,
  StartedReplay,
  StartReplayBody,
  ReplayQuery,
  ReplaySessionList,
  ReplaySessionsQuery,
  ShownReplay,
} from './schemas.ts';

type Body = Static<typeof StartReplayBody>;

/** Parses a request for a replay, and resolves its sessions. */
async function parseReplayBody(
  api: RouteContext,
  accountId: string,
  body: Body,
  signal: AbortSignal,
): Promise<ReplayInput> {
  const { sessions, filter, turns, checks, budget, ...settings } = body;
  const replayedSessions = await findSessionsToReplay(api, accountId, {
    sessions,
    filter: filter && parseSessionFilter(filter),
    signal,
  });
  if (checks) requireTurnsOf(checks, replayedSessions, turns);
  return {
    ...settings,
    sessions: replayedSessions,
    tools: settings.tools ?? 'recorded',
    missing_tools: settings.missing_tools ?? 'stop',
    concurrency: settings.concurrency ?? 1,
    budget_tokens: budget?.tokens ?? LIMITS.replays.defaultBudgetTokens,
    ...(turns?.from !== undefined && { from_turn: turns.from }),
    ...(turns?.up_to !== undefined && { up_to_turn: turns.up_to }),
    ...(checks && { checks: await serializeChecks(api.catalogue, checks, accountId) }),
  };
}

const REPLAY_LIST: ListFormat<ReplayRow> = {
  emptyData: [],
  present: presentReplay,
  cursorOf: ({ replay_id }) => replay_id,
};

const revisionEtag = createRevisionEtag(Replay);

const startReplayRoute = defineRoute({
  method: 'post',
  path: '/v1/replays',
  operationId: 'startReplay',
  summary: 'Replays recorded sessions and compares the results',
  description:
    'Each session is replayed as of now, in a new session that is marked as its replay; the recorded session is not changed. The replay continues in the background and survives restarts; `Location` is the path of its results.',
  access: 'agents:run',
  query: CommonQuery,
  body: StartReplayBody,
  data: StartedReplay,
  accepted: StartedReplay,
  returnsEtag: true,
  errors: [
    'agent_not_found',
    'agent_erased',
    'model_not_supported',
    'tool_not_supported',
    'replay_limit_reached',
    ...SESSION_ERROR_CODES,
  ],
  idempotency: {
    reserve: async (api, { actor, body }) => {
      await resolveReplayInput(api, actor, (signal) =>
        parseReplayBody(api, actor.account_id, body, signal),
      );
      return { id: api.ids.typeId('replay') };
    },
  },
  handle: async (api, { actor, body, claim }, ctx) => {
    const input = (signal: AbortSignal) => parseReplayBody(api, actor.account_id, body, signal);
    const data = await startReplay(api, actor, input, claim);
    const { replay_id: id, created_at: updated_at } = data;
    ctx.set('location', `/v1/replays/${id}`);
    ctx.set('etag', revisionEtag({ id, revision: 0, updated_at }));
    return { data, status: 202 };
  },
});

const listReplaysRoute = defineRoute({
  method: 'get',
  path: '/v1/replays',
  operationId: 'listReplays',
  summary: "Lists the account's replays, newest first",
  access: 'sessions:read',
  query: ReplayListQuery,
  data: ReplayList,
  errors: [],
  bufferBytes: PAGE_BUFFER_BYTES,
  handle: async ({ readModels }, { actor, query }) => {
    const page = await readModels.listReplays(actor.account_id, parsePageQuery(query));
    return { page: (to) => renderPage(page, REPLAY_LIST, to) };
  },
});

const getReplayRoute = defineRoute({
  method: 'get',
  path: '/v1/replays/{replayId}',
  operationId: 'getReplay',
  summary: 'Returns the progress, totals and turns of a replay',
  description:
    'Turns are ordered by session, oldest first. A changed output is compared with the recorded one, word by word. Texts are read on request, so texts of erased sessions are never included.',
  access: 'sessions:read',
  query: ReplayQuery,
  data: ShownReplay,
  returnsEtag: true,
  errors: ['quota_exceeded', 'replay_not_found', 'stream_damaged', 'key_missing'],
  // A page, and two turns whose outputs are compared.
  bufferBytes: 3 * PAGE_BUFFER_BYTES,
  handle: async (api, { actor, params, query }, ctx) => {
    const { account_id } = actor;
    const { only, session_id } = query;
    const row = await findOwnReplay(api, account_id, params['replayId']!);
    const { replay_id: id, revision, updated_at } = row;
    ctx.set('etag', revisionEtag({ id, revision, updated_at }));
    const settings = presentReplaySettings(await readReplaySettings(api, row));
    const limit = Math.min(query.limit ?? Infinity, LIMITS.replays.pageTurns);
    const page = await api.readModels.listReplayTurns(row.replay_id, {
      ...parsePageQuery({ ...query, limit }),
      ...(only !== undefined && { only }),
      ...(session_id !== undefined && { session_id }),
    });
    const turns = await withDiffs(api, account_id, page);
    await api.readAudit.record(api, actor, 'transcripts', replayStream(row.replay_id));
    const rows: ListFormat<ComparedOutputs> = {
      emptyData: { ...presentReplay(row), settings, turns: [] },
      present: presentReplayTurn,
      cursorOf: (turn) => turn.row.entry,
    };
    return { page: (to) => renderPage(turns, rows, to) };
  },
});

const listReplaySessionsRoute = defineRoute({
  method: 'get',
  path: '/v1/replays/{replayId}/sessions',
  operationId: 'listReplaySessions',
  summary: 'Lists the sessions of a replay and their progress',
  access: 'sessions:read',
  query: ReplaySessionsQuery,
  data: ReplaySessionList,
  errors: ['replay_not_found'],
  bufferBytes: PAGE_BUFFER_BYTES,
  handle: async (api, { actor, params, query }) => {
    const replay = await findOwnReplay(api, actor.account_id, params['replayId']!);
    const page = await api.readModels.listReplaySessions(replay.replay_id, parsePageQuery(query));
    const rows: ListFormat<ReplaySessionRow> = {
      emptyData: [],
      present: (row) => presentReplaySession(replay, row),
      cursorOf: ({ session_id }) => session_id,
    };
    return { page: (to) => renderPage(page, rows, to) };
  },
});

const cancelReplayRoute = defineRoute({
  method: 'post',
  path: '/v1/replays/{replayId}/cancel',
  operationId: 'cancelReplay',
  summary: 'Cancels a replay',
  description:
    'No further turns start, and running turns are interrupted. Completed comparisons stay. A replay that has ended is not changed. The body is optional.',
  access: 'agents:run',
  query: CommonQuery,
  body: CancelReplayBody,
  bodyOptional: true,
  data: Replay,
  errors: ['replay_not_found', ...STREAM_ERROR_CODES],
  idempotency: {
    reserve: (api, { actor, params }) =>
      withReadMemory(api, async () => {
        const { replay_id } = await findOwnReplay(api, actor.account_id, params['replayId']!);
        return { id: replay_id };
      }),
  },
  // One reservation, so that a cancelled replay does not wait for the memory of its response.
  handle: (api, { actor, params, claim }) =>
    withReadMemory(api, async () => {
      const replayId = params['replayId']!;
      await cancelReplay(api, actor, replayId);
      if (claim?.isFirstAttempt === false) api.onIdempotentReplay?.();
      return { data: presentReplay(await findOwnReplay(api, actor.account_id, replayId)) };
    }),
});

const REVISION = '^(?:0|[1-9][0-9]{0,8})$';
const RULE = 'must be the id of an event of this replay, as its stream gave it';

const parseRevision = (id: string): number | undefined =>
  new RegExp(REVISION).test(id) ? Number(id) : undefined;

function formatUpdate(update: ReplayUpdate): SseEvent {
  const id = String(update.revision);
  if (update.type === 'session_ended') {
    const { session_id, status, code = null } = update.end;
    return { id, event: 'session.ended', data: JSON.stringify({ session_id, status, code }) };
  }
  const data = JSON.stringify(presentReplay(update.row));
  return { id, event: `replay.${update.type}`, data };
}

async function* formatUpdates(updates: AsyncIterable<ReplayUpdate>): AsyncGenerator<SseEvent> {
  for await (const update of updates) yield formatUpdate(update);
}

const streamReplayRoute = defineRoute({
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
  // Of the row and the first event, until the stream begins.
  bufferBytes: PAGE_BUFFER_BYTES,
  handle: async (api, { actor, params }, ctx) => {
    const { account_id } = actor;
    const row = await findOwnReplay(api, account_id, params['replayId']!);
    const after = readLastEventId(ctx, parseRevision, RULE) ?? -1;
    if (row.status !== 'running' && after >= row.revision) {
      ctx.status = 204;
      return undefined;
    }
    acquireStream(api, account_id, ctx);
    sendEventStream(ctx, createKeyCheck(api, actor), (disconnected) => {
      const signal = AbortSignal.any([disconnected, api.stopping]);
      return formatUpdates(followReplay(api, { row, after }, signal));
    });
    return undefined;
  },
});

export const replaysFeature = defineFeature({
  routes: [
    startReplayRoute,
    listReplaysRoute,
    getReplayRoute,
    listReplaySessionsRoute,
    cancelReplayRoute,
    streamReplayRoute,
  ],
  tags: { replays: 'Replays of recorded sessions, and their comparison' },
  pathParameters: { replayId: ReplayId },
  errors: {
    replay_not_found: { status: 404, description: 'The account has no such replay' },
    session_of_replay: {
      status: 409,
      description: 'The session was created by a replay, and no other run can continue it',
    },
    replay_limit_reached: {
      status: 409,
      description: 'The account already runs as many replays as it may; none was started',
    },
    tool_not_recorded: {
      status: 502,
      description:
        'Of a replayed turn: the model called a tool as the recorded turn had not, and no result is recorded',
    },
  },
  rejections: {
    replay_exists: DEFECT,
    replay_missing: replayNotFoundError,
    replay_ended: DEFECT,
    // Only the replay continues its sessions; any client may continue a fork of one.
    session_of_replay: sessionOfReplayError,
  },
});
