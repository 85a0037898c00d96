import { useQueries } from '@tanstack/react-query';
import { useState } from 'react';
import { ErrorState } from '../../components/view.tsx';
import { EntryList, type EntryListProps } from '../../components/EntryList.tsx';

/** Entries beyond the screen that are loaded as well. */
const AHEAD = 5;

interface NumberedListProps<Entry> extends Omit<
  EntryListProps<Entry>,
  'entryAt' | 'onRange' | 'isFollowing'
> {
  queryKey: readonly unknown[];
  pageSize: number;
  /** Reads the entries from `start` up to `end` (exclusive). */
  read: (start: number, end: number, signal: AbortSignal) => Promise<readonly Entry[]>;
}

/** A list numbered from 0 that loads the pages on screen. Without a target it starts at its end. */
export function NumberedList<Entry>(props: NumberedListProps<Entry>) {
  const { queryKey, count, pageSize, read, target, ...list } = props;
  const initial = Math.min(target ?? count - 1, count - 1);
  const [range, setRange] = useState({ start: initial, end: initial });
  const pageOf = (index: number): number =>
    Math.floor(Math.min(Math.max(index, 0), count - 1) / pageSize);
  const first = pageOf(range.start - AHEAD);
  const results = useQueries({
    queries: Array.from({ length: pageOf(range.end + AHEAD) - first + 1 }, (_, at) => ({
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
  const failed = results.find(({ error }) => error !== null);
  if (failed && results.every(({ data }) => data === undefined))
    return <ErrorState error={failed.error} onRetry={() => void failed.refetch()} />;
  return (
    <EntryList
      {...list}
      count={count}
      target={target}
      isFollowing
      onRange={setRange}
      entryAt={(index) => results[Math.floor(index / pageSize) - first]?.data?.[index % pageSize]}
    />
  );
}
