import { useQueries, useQuery, useQueryClient, type QueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { api, pageOf, type ListPage, type Schema } from '../api/client.ts';
import { EMPTY_INDEX, notePage, pagesWithin, type IndexedPage } from './pageIndex.ts';
import type { SessionFilters } from './search.ts';

type ListedSession = Schema<'ListedSession'>;
type SessionPage = ListPage<ListedSession> & { index: Schema<'IndexLag'> | undefined };

const PAGE_ROWS = 200;
/** Pages that are no longer on screen are kept so long. */
const KEPT_MS = 10_000;
const ROWS_REFRESH_MS = 5_000;
const NEW_SESSIONS_REFRESH_MS = 2_000;
const MOST_NEW = 100;

type Query = SessionFilters & { after?: string; limit: number; order?: 'oldest' };

async function readPage(query: Query, signal: AbortSignal): Promise<SessionPage> {
  const answer = api.GET('/v1/sessions', { params: { query }, signal });
  return { ...(await pageOf(answer)), index: (await answer).data!.index };
}

/** The query of a page. `generation` tells the lists apart that began with other sessions. */
const pageQuery = (
  client: QueryClient,
  { filters, generation, after }: { filters: SessionFilters; generation: number; after?: string },
) => {
  const queryKey = ['sessions', 'page', filters, generation, after ?? ''];
  return {
    queryKey,
    queryFn: ({ signal }: { signal: AbortSignal }) => {
      const query: Query = { ...filters, limit: PAGE_ROWS, ...(after !== undefined && { after }) };
      // Sessions that began since then would move the rows that the reader looks at.
      const first = client.getQueryData<SessionPage>(queryKey)?.rows[0]?.created_at;
      if (first === undefined || after !== undefined) return readPage(query, signal);
      const created_to = new Date(Date.parse(first) + 1).toISOString();
      return readPage({ ...query, created_to }, signal);
    },
  };
};

interface Options {
  filters: SessionFilters;
  /** The rows on screen. */
  range: { start: number; end: number };
  /** False while the reader has paused the list. */
  isLive: boolean;
  /** True while the reader sees the beginning of the list, and new sessions may move it. */
  isAtStart: boolean;
}

/**
 * The sessions of a list. Only the pages on screen are kept in memory; the rest is known by its
 * cursors. New sessions come in while the list is live and at its start; otherwise they are counted.
 */
export function useSessionPages({ filters, range, isLive, isAtStart }: Options) {
  const client = useQueryClient();
  const [generation, setGeneration] = useState(0);
  const [index, setIndex] = useState(EMPTY_INDEX);
  const visiblePages = pagesWithin(index, range.start, range.end + PAGE_ROWS / 2);
  const results = useQueries({
    queries: visiblePages.map(({ after }) => ({
      ...pageQuery(client, { filters, generation, ...(after !== undefined && { after }) }),
      refetchInterval: isLive ? ROWS_REFRESH_MS : (false as const),
      staleTime: isLive ? ROWS_REFRESH_MS : Infinity,
      gcTime: KEPT_MS,
    })),
  });
  const loaded = visiblePages.map((page, at): [IndexedPage, SessionPage | undefined] => [
    page,
    results[at]!.data,
  ]);
  const latest = loaded.at(-1)!;
  useEffect(() => {
    const [page, data] = latest;
    if (data) setIndex((known) => notePage(known, page, data));
    // The page and its data change together.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [latest[0], latest[1]]);

  const [newest, setNewest] = useState<ListedSession>();
  const first = visiblePages[0]!.start === 0 ? results[0]!.data?.rows[0] : undefined;
  if (first && first.session_id !== newest?.session_id) setNewest(first);
  const { data: fresh } = useQuery({
    queryKey: ['sessions', 'new', filters, newest?.session_id],
    queryFn: ({ signal }) =>
      readPage({ ...filters, order: 'oldest', after: newest!.session_id, limit: MOST_NEW }, signal),
    enabled: newest !== undefined,
    refetchInterval: NEW_SESSIONS_REFRESH_MS,
    gcTime: 0,
  });
  const newCount = fresh?.rows.length ?? 0;
  const showNew = async (): Promise<void> => {
    await client.prefetchQuery(pageQuery(client, { filters, generation: generation + 1 }));
    setGeneration(generation + 1);
    setIndex(EMPTY_INDEX);
  };
  const takesNew = newCount > 0 && isLive && isAtStart;
  useEffect(() => {
    if (takesNew) void showNew();
    // Only new sessions start this.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [takesNew, generation]);

  return {
    count: index.count,
    isComplete: index.isComplete,
    error: results.find(({ error }) => error !== null)?.error,
    retry: () => results.forEach(({ error, refetch }) => error && void refetch()),
    /** Until when the index of words is complete, where it lags behind. */
    lag: results.find(({ data }) => data?.index)?.data?.index?.complete_until,
    newCount: takesNew ? 0 : newCount,
    generation,
    hasMoreNew: fresh?.next !== undefined,
    showNew,
    rowAt(at: number): ListedSession | undefined {
      const page = loaded.findLast(([{ start }]) => start <= at);
      return page?.[1]?.rows[at - page[0].start];
    },
  };
}
