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
  pageSize: number;
  /** The query of a page, numbered from 0; all but the last one have `pageSize` entries. */
  pageQuery: (page: number) => {
    queryKey: readonly unknown[];
    queryFn: (context: { signal: AbortSignal }) => Promise<readonly Entry[]>;
  };
}

/** A list numbered from 0 that loads the pages on screen. Without a target it starts at its end. */
export function NumberedList<Entry>(props: NumberedListProps<Entry>) {
  const { count, pageSize, pageQuery, target, ...list } = props;
  const initial = Math.min(target ?? count - 1, count - 1);
  const [range, setRange] = useState({ start: initial, end: initial });
  const pageOf = (index: number): number =>
    Math.floor(Math.min(Math.max(index, 0), count - 1) / pageSize);
  const first = pageOf(range.start - AHEAD);
  const results = useQueries({
    queries: Array.from({ length: pageOf(range.end + AHEAD) - first + 1 }, (_, at) =>
      pageQuery(first + at),
    ),
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
