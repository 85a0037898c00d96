import type { UseInfiniteQueryResult } from '@tanstack/react-query';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useRef, type ReactNode } from 'react';
import { cn } from './classNames.ts';
import { useListKeys } from './useListKeys.ts';

interface VirtualListProps<Row> {
  label: string;
  rows: readonly Row[];
  idOf: (row: Row) => string;
  /** The height of a row in pixels, until it is measured. */
  rowHeight: number;
  children: (row: Row) => ReactNode;
  /** The query whose next page is read at the end of the list. */
  query: Pick<UseInfiniteQueryResult, 'hasNextPage' | 'isFetchingNextPage' | 'fetchNextPage'>;
  className?: string;
}

/** A long list, of which only the rows on screen are in the document. `j` and `k` move in it. */
export function VirtualList<Row>({
  label,
  rows,
  idOf,
  rowHeight,
  children,
  query: { hasNextPage, isFetchingNextPage, fetchNextPage },
  className,
}: VirtualListProps<Row>) {
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: 8,
  });
  useListKeys(scroller, rows.length, (index) => virtual.scrollToIndex(index));
  const items = virtual.getVirtualItems();
  const isAtEnd = (items.at(-1)?.index ?? 0) >= rows.length - 1;
  useEffect(() => {
    if (isAtEnd && hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [isAtEnd, hasNextPage, isFetchingNextPage, fetchNextPage]);
  return (
    <div ref={scroller} className={cn('overflow-y-auto', className)}>
      <ul aria-label={label} className="relative" style={{ height: virtual.getTotalSize() }}>
        {items.map(({ index, start }) => (
          <li
            key={idOf(rows[index]!)}
            ref={virtual.measureElement}
            data-index={index}
            className="absolute inset-x-0 top-0 border-b hover:bg-muted/60"
            style={{ transform: `translateY(${start}px)` }}
          >
            {children(rows[index]!)}
          </li>
        ))}
      </ul>
    </div>
  );
}

/** On the link of a row: the whole row opens it. */
export const ROW_LINK =
  'block truncate font-medium after:absolute after:inset-0 focus-visible:outline-none focus-visible:after:outline-2 focus-visible:after:-outline-offset-2 focus-visible:after:outline-ring';
