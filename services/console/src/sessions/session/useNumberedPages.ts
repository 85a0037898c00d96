import { useQueries } from '@tanstack/react-query';

/** A list whose entries are numbered from 0, and of which pages can be read anywhere. */
export interface NumberedList<Entry> {
  queryKey: readonly unknown[];
  count: number;
  pageSize: number;
  /** Reads the entries from `start` up to `end` (exclusive). */
  read: (start: number, end: number, signal: AbortSignal) => Promise<readonly Entry[]>;
}

/** The entries of a numbered list, of which only the pages with `range` (inclusive) are read. */
export function useNumberedPages<Entry>(
  { queryKey, count, pageSize, read }: NumberedList<Entry>,
  range: { start: number; end: number },
) {
  const first = Math.floor(Math.max(range.start, 0) / pageSize);
  const last = Math.floor(Math.min(range.end, count - 1) / pageSize);
  const results = useQueries({
    queries: Array.from({ length: Math.max(last - first + 1, 0) }, (_, at) => ({
      queryKey: [...queryKey, first + at],
      queryFn: ({ signal }: { signal: AbortSignal }) => {
        const start = (first + at) * pageSize;
        return read(start, Math.min(start + pageSize, count), signal);
      },
      // Recorded entries do not change: the view invalidates them when the session does.
      staleTime: Infinity,
      gcTime: 30_000,
    })),
  });
  return {
    entryAt: (index: number): Entry | undefined =>
      results[Math.floor(index / pageSize) - first]?.data?.[index % pageSize],
    error: results.find(({ error }) => error !== null)?.error ?? undefined,
    retry: () => results.forEach(({ error, refetch }) => error && void refetch()),
  };
}
