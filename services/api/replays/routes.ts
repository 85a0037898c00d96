import { cancelReplay } from '../../../shared/replays/commands.ts';
import { requireStartable, startReplay } from '../../../shared/replays/commands.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { withDiffs, type ComparedOutputs } from '../../../shared/replays/comparison/diffs.ts';
import { findOwnReplay, readReplaySettings } from '../../../shared/replays/queries.ts';
import type { ReplayRow, ReplaySessionRow } from '../../../shared/readModels/tables.ts';
import { MAKING_BYTES, pageBody, type Rows } from '../http/responses/listResponse.ts';
import {
  presentReplay,
  presentReplaySession,
  presentReplaySettings,
  presentReplayTurn,
} from './presenter.ts';
import { replayInput } from './parseReplayBody.ts';
import { SESSION_ERRORS, STREAM_ERRORS } from '../http/errors/streamErrorCodes.ts';
import { defineRoute } from '../http/route.ts';
import { CommonQuery } from '../openapi/commonSchemas.ts';
import { Replay, ReplayList, ReplayListQuery } from './schemas.ts';
import { CancelReplayBody, StartedReplay, StartReplayBody } from './startSchemas.ts';
import { ReplayQuery, ReplaySessionList, ReplaySessionsQuery, ShownReplay } from './turnSchemas.ts';
import { pageFrom } from '../sessions/routes.ts';

const REPLAYS: Rows<ReplayRow> = {
  around: [],
  present: presentReplay,
  cursorOf: ({ replay_id }) => replay_id,
};

const startReplayRoute = defineRoute({
  method: 'post',
  path: '/v1/replays',
  operationId: 'startReplay',
  summary: 'Runs recorded sessions again, and compares',
  description:
    'Each session is replayed as it is now, in a new session that is marked as its replay; the recorded one stays as it is. It goes on in the background, and outlasts restarts; `Location` tells where its outcome is to be had.',
  access: 'agents:run',
  query: CommonQuery,
  body: StartReplayBody,
  data: StartedReplay,
  accepted: StartedReplay,
  errors: [
    'agent_not_found',
    'agent_erased',
    'model_not_supported',
    'tool_not_supported',
    'replay_limit_reached',
    ...SESSION_ERRORS,
  ],
  once: {
    reserve: async (api, { actor, body }) => {
      await requireStartable(api, actor, await replayInput(api, actor.account_id, body));
      return { id: api.ids.typeId('replay') };
    },
  },
  handle: async (api, { actor, body, claim }, ctx) => {
    const input = () => replayInput(api, actor.account_id, body);
    const data = await startReplay(api, actor, input, claim);
    ctx.set('location', `/v1/replays/${data.replay_id}`);
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
  holds: MAKING_BYTES,
  handle: async ({ readModels }, { actor, query }) => {
    const page = await readModels.listReplays(actor.account_id, pageFrom(query));
    return { page: (to) => pageBody(page, REPLAYS, to) };
  },
});

const getReplayRoute = defineRoute({
  method: 'get',
  path: '/v1/replays/{replayId}',
  operationId: 'getReplay',
  summary: 'Returns how far a replay is, what it comes to, and its turns',
  description:
    'Turns come by session, oldest first. A changed output is shown beside the recorded one, word by word; texts are read when this is asked for, so none is left of a session that was erased.',
  access: 'sessions:read',
  query: ReplayQuery,
  data: ShownReplay,
  errors: ['replay_not_found', 'stream_damaged', 'key_missing'],
  // Beside the page, two turns whose outputs are compared.
  holds: 3 * MAKING_BYTES,
  handle: async (api, { actor, params, query }) => {
    const { account_id } = actor;
    const { only, session_id } = query;
    const row = await findOwnReplay(api, account_id, params['replayId']!);
    const settings = presentReplaySettings(await readReplaySettings(api, row));
    const limit = Math.min(query.limit ?? Infinity, LIMITS.replays.pageTurns);
    const found = await api.readModels.listReplayTurns(row.replay_id, {
      ...pageFrom({ ...query, limit }),
      ...(only !== undefined && { only }),
      ...(session_id !== undefined && { session_id }),
    });
    const turns = await withDiffs(api, account_id, found);
    const rows: Rows<ComparedOutputs> = {
      around: { ...presentReplay(row), settings, turns: [] },
      present: presentReplayTurn,
      cursorOf: (turn) => turn.row.entry,
    };
    return { page: (to) => pageBody(turns, rows, to) };
  },
});

const listReplaySessionsRoute = defineRoute({
  method: 'get',
  path: '/v1/replays/{replayId}/sessions',
  operationId: 'listReplaySessions',
  summary: 'Lists the sessions of a replay, and how far each is',
  access: 'sessions:read',
  query: ReplaySessionsQuery,
  data: ReplaySessionList,
  errors: ['replay_not_found'],
  holds: MAKING_BYTES,
  handle: async (api, { actor, params, query }) => {
    const replay = await findOwnReplay(api, actor.account_id, params['replayId']!);
    const page = await api.readModels.listReplaySessions(replay.replay_id, pageFrom(query));
    const rows: Rows<ReplaySessionRow> = {
      around: [],
      present: (row) => presentReplaySession(replay, row),
      cursorOf: ({ session_id }) => session_id,
    };
    return { page: (to) => pageBody(page, rows, to) };
  },
});

const cancelReplayRoute = defineRoute({
  method: 'post',
  path: '/v1/replays/{replayId}/cancel',
  operationId: 'cancelReplay',
  summary: 'Cancels a replay',
  description:
    'Nothing more is begun, and turns that run are interrupted. What was compared stays. One that has ended stays as it is. The body may be left out.',
  access: 'agents:run',
  query: CommonQuery,
  body: CancelReplayBody,
  bodyOptional: true,
  data: Replay,
  errors: ['replay_not_found', ...STREAM_ERRORS],
  once: {
    reserve: async (api, { actor, params }) => {
      const { replay_id } = await findOwnReplay(api, actor.account_id, params['replayId']!);
      return { id: replay_id };
    },
  },
  handle: async (api, { actor, params, claim }) => {
    const replayId = params['replayId']!;
    await cancelReplay(api, actor, replayId);
    if (claim?.isFirstAttempt === false) api.onIdempotentReplay?.();
    return { data: presentReplay(await findOwnReplay(api, actor.account_id, replayId)) };
  },
});

export const replayRoutes = [
  startReplayRoute,
  listReplaysRoute,
  getReplayRoute,
  listReplaySessionsRoute,
  cancelReplayRoute,
];
