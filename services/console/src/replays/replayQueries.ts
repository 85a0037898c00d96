import {
  infiniteQueryOptions,
  queryOptions,
  useQueryClient,
  type QueryClient,
} from '@tanstack/react-query';
import { useEffect } from 'react';
import { ApiError } from '../api/apiError.ts';
import { api, dataOf, pageOf, readEvents, type Schema } from '../api/client.ts';
import { cursorBefore, type TurnFilter, type TurnId } from './search.ts';

export type Replay = Schema<'Replay'>;
export type ShownReplay = Schema<'ShownReplay'>;
export type ReplayTurn = Schema<'ReplayTurn'>;

const PAGE_REPLAYS = 100;
const PAGE_TURNS = 50;
/** The list follows replays that run. */
const LIST_MS = 3_000;
/** Pauses before a stream that broke is opened again. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 15_000;

/** The replays of the account, page by page, newest first. */
export const replaysQuery = infiniteQueryOptions({
  queryKey: ['replays', 'list'],
  queryFn: ({ pageParam: after }) =>
    pageOf(
      api.GET('/v1/replays', {
        params: { query: { limit: PAGE_REPLAYS, ...(after && { after }) } },
      }),
    ),
  initialPageParam: '',
  getNextPageParam: ({ next }) => next,
  refetchInterval: ({ state }) =>
    state.data?.pages.some(({ rows }) => rows.some(({ status }) => status === 'running'))
      ? LIST_MS
      : false,
});

const readReplay = (replayId: string, query: { limit: number; after?: string }) =>
  api.GET('/v1/replays/{replayId}', { params: { path: { replayId }, query } });

/** A replay with its settings, without its turns. */
export const replayQuery = (replayId: string) =>
  queryOptions({
    queryKey: ['replays', replayId],
    queryFn: async () => {
      const { turns: _turns, ...replay } = await dataOf(readReplay(replayId, { limit: 1 }));
      return replay;
    },
  });

/** The turns of a replay with one outcome, page by page, in the order of their sessions. */
export const turnsQuery = (replayId: string, filter: TurnFilter) =>
  infiniteQueryOptions({
    queryKey: ['replays', replayId, 'turns', filter],
    queryFn: async ({ pageParam: after }) => {
      const only = filter === 'all' ? {} : { only: filter };
      const { data, response } = await api.GET('/v1/replays/{replayId}', {
        params: {
          path: { replayId },
          query: { limit: PAGE_TURNS, ...only, ...(after && { after }) },
        },
      });
      const rows = data!.data.turns;
      return pageOf(Promise.resolve({ data: { data: rows }, response }));
    },
    initialPageParam: '',
    getNextPageParam: ({ next }) => next,
  });

/** One compared turn; null if the replay has not compared it. */
export const comparedTurnQuery = (replayId: string, id: TurnId) =>
  queryOptions({
    queryKey: ['replays', replayId, 'turn', id],
    queryFn: async () => {
      const page = { limit: 1, after: cursorBefore(id) };
      const [found] = (await dataOf(readReplay(replayId, page))).turns;
      return found?.session_id === id.session_id && found.turn === id.turn ? found : null;
    },
  });

/** A turn of a transcript. */
export const transcriptTurnQuery = ({ session_id, turn }: TurnId) =>
  queryOptions({
    queryKey: ['sessions', session_id, 'turns', turn],
    queryFn: () =>
      dataOf(
        api.GET('/v1/sessions/{sessionId}/turns/{turn}', {
          params: { path: { sessionId: session_id, turn: String(turn) } },
        }),
      ),
  });

/** The sessions of a replay that their replay did not complete, of the first page of all. */
export const replaySessionsQuery = (replayId: string) =>
  queryOptions({
    queryKey: ['replays', replayId, 'sessions'],
    queryFn: () =>
      dataOf(
        api.GET('/v1/replays/{replayId}/sessions', {
          params: { path: { replayId }, query: { limit: 1_000 } },
        }),
      ),
  });

/** Takes what a stream tells of a replay until it has ended. */
async function followReplay(
  client: QueryClient,
  replayId: string,
  signal: AbortSignal,
): Promise<void> {
  for await (const { event, data } of readEvents(`/v1/replays/${replayId}/stream`, { signal })) {
    if (event !== 'replay.progress' && event !== 'replay.ended') continue;
    const progress = JSON.parse(data) as Replay;
    client.setQueryData(
      replayQuery(replayId).queryKey,
      (known) => known && { ...known, ...progress },
    );
    if (event === 'replay.ended') {
      await client.invalidateQueries({ queryKey: ['replays', replayId, 'turns'] });
      return;
    }
  }
}

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });

/** Follows a replay that runs. A stream that breaks is opened again, with growing pauses. */
export function useReplayProgress(replayId: string, isRunning: boolean): void {
  const client = useQueryClient();
  useEffect(() => {
    if (!isRunning) return undefined;
    const controller = new AbortController();
    const { signal } = controller;
    const follow = async (): Promise<void> => {
      for (
        let wait = FIRST_PAUSE_MS;
        !signal.aborted;
        wait = Math.min(2 * wait, LONGEST_PAUSE_MS)
      ) {
        try {
          await followReplay(client, replayId, signal);
        } catch (error) {
          if (error instanceof ApiError && error.retry === 'never') return;
        }
        await pause(wait, signal);
        if (!signal.aborted) await client.invalidateQueries(replayQuery(replayId));
      }
    };
    void follow();
    return () => controller.abort();
  }, [client, replayId, isRunning]);
}
