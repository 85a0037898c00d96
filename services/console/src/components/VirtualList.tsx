import type { UseInfiniteQueryResult } from '@tanstack/react-query';
import { useEffect, useState, type ReactNode } from 'react';
import { EntryList, type EntryListProps } from './EntryList.tsx';
import { Loaded } from './view.tsx';

interface VirtualListProps<Row> extends Pick<
  EntryListProps<Row>,
  'label' | 'estimate' | 'className' | 'children'
> {
  /** The query of the rows, whose next page is read at the end of the list. */
  query: UseInfiniteQueryResult<Row[]>;
  /** Shown instead of a list without rows. */
  empty: ReactNode;
  idOf: (row: Row) => string;
}

/** The rows of a query, of which only those on screen are in the document. */
export function VirtualList<Row>({ query, empty, idOf, ...list }: VirtualListProps<Row>) {
  const { data: rows = [], hasNextPage, isFetchingNextPage, fetchNextPage } = query;
  const [end, setEnd] = useState(0);
  const isAtEnd = end >= rows.length - 1;
  useEffect(() => {
    if (isAtEnd && hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [isAtEnd, hasNextPage, isFetchingNextPage, fetchNextPage]);
  if (query.data?.length === 0) return empty;
  return (
    <Loaded query={query}>
      {() => (
        <EntryList
          {...list}
          count={rows.length}
          entryAt={(index) => rows[index]}
          keyOf={(index) => idOf(rows[index]!)}
          onRange={(range) => setEnd(range.end)}
        />
      )}
    </Loaded>
  );
}

/** On the link of a row: the whole row opens it. */
export const ROW_LINK =
  'block truncate font-medium after:absolute after:inset-0 focus-visible:outline-none focus-visible:after:outline-2 focus-visible:after:-outline-offset-2 focus-visible:after:outline-ring';
