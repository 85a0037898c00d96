import { infiniteQueryOptions, queryOptions, useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { api, dataOf, pageOf, readEvents, rowsQuery, type Schema } from '../api/client.ts';
import { cursorBefore, type TurnFilter, type TurnId } from './search.ts';

export type Replay = Schema<'Replay'>;
export type ShownReplay = Omit<Schema<'ShownReplay'>, 'turns'>;
export type ReplayTurn = Schema<'ReplayTurn'>;

const PAGE_REPLAYS = 100;
const PAGE_TURNS = 50;
/** How often the list looks at replays that run. */
const LIST_MS = 3_000;
/** Pauses before a stream that broke is opened again. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 15_000;

/** The replays of the account, page by page, newest first. */
export const replaysQuery = infiniteQueryOptions({
  ...rowsQuery(['replays', 'list'], (after) =>
    pageOf(api.GET('/v1/replays', { params: { query: { limit: PAGE_REPLAYS, ...after } } })),
  ),
  refetchInterval: ({ state }) =>
    state.data?.pages.some(({ rows }) => rows.some(({ status }) => status === 'running'))
      ? LIST_MS
      : false,
});

const readReplay = (
  replayId: string,
  query: { limit: number; after?: string; only?: Exclude<TurnFilter, 'all'> },
) => api.GET('/v1/replays/{replayId}', { params: { path: { replayId }, query } });

/** A replay with its settings, without its turns. */
export const replayQuery = (replayId: string) =>
  queryOptions<ShownReplay>({
    queryKey: ['replays', replayId],
    queryFn: () => dataOf(readReplay(replayId, { limit: 1 })),
  });

/** The compared turns with one outcome, page by page, in the order of their sessions. */
export const turnsQuery = (replayId: string, filter: TurnFilter) =>
  rowsQuery(['replays', replayId, 'turns', filter], async (after) => {
    const only = filter === 'all' ? {} : { only: filter };
    const { data, response } = await readReplay(replayId, { limit: PAGE_TURNS, ...only, ...after });
    return pageOf(Promise.resolve({ data: { data: data!.data.turns }, response }));
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

/** Follows a replay that runs. A stream that breaks is opened again, with growing pauses. */
export function useReplayProgress(replayId: string, isRunning: boolean): void {
  const client = useQueryClient();
  useEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    let timer: ReturnType<typeof setTimeout> | undefined;
    async function follow(pause: number): Promise<void> {
      try {
        for await (const event of readEvents(`/v1/replays/${replayId}/stream`, { signal })) {
          if (event.event === 'session.ended') continue;
          const progress = JSON.parse(event.data) as Replay;
          client.setQueryData(
            replayQuery(replayId).queryKey,
            (now) => now && { ...now, ...progress },
          );
        }
      } catch {
        // The replay itself, read below, shows an error that stays.
      }
      if (signal.aborted) return;
      timer = setTimeout(() => void follow(Math.min(2 * pause, LONGEST_PAUSE_MS)), pause);
      await client.invalidateQueries({ queryKey: ['replays', replayId] });
    }
    if (isRunning) void follow(FIRST_PAUSE_MS);
    return () => {
      controller.abort();
      clearTimeout(timer);
      if (isRunning) void client.invalidateQueries({ queryKey: ['replays', replayId, 'turns'] });
    };
  }, [client, replayId, isRunning]);
}
