import type { UseInfiniteQueryResult } from '@tanstack/react-query';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useEffectEvent, useRef, useState, type ReactNode } from 'react';
import { cn } from './classNames.ts';
import { Button } from './Button.tsx';
import { Alert, Loaded, Skeleton } from './view.tsx';
import { useListKeys } from '../shell/useShortcuts.ts';

/** As close to its end, a list follows what is added. */
const END_PX = 48;

export interface EntryListProps<Entry> {
  label: string;
  count: number;
  /** Undefined while an entry is being loaded. */
  entryAt: (index: number) => Entry | undefined;
  /** Tells entries apart that may move; their index by default. */
  keyOf?: (index: number) => string;
  /** The height of an entry before it is measured, in pixels. */
  estimate: number;
  /** The entry to show; changes scroll to it. */
  target?: number | undefined;
  /** Whether the list starts at its end and follows it while the reader is there. */
  isFollowing?: boolean;
  /** Gets the first and the last entry on screen. */
  onRange: (range: { start: number; end: number }) => void;
  className?: string;
  children: (entry: Entry) => ReactNode;
}

/** A long list, of which only the entries on screen are in the document. */
export function EntryList<Entry>({
  label,
  count,
  entryAt,
  keyOf,
  estimate,
  target,
  isFollowing = false,
  onRange,
  className,
  children,
}: EntryListProps<Entry>) {
  const scroller = useRef<HTMLDivElement>(null);
  const initial = Math.min(target ?? (isFollowing ? count - 1 : 0), count - 1);
  const virtual = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => estimate,
    initialOffset: () => Math.max(initial, 0) * estimate,
    overscan: 4,
    ...(keyOf && { getItemKey: keyOf }),
    ...(isFollowing && { anchorTo: 'end', followOnAppend: true, scrollEndThreshold: END_PX }),
    onChange: ({ range }) => range && onRange({ start: range.startIndex, end: range.endIndex }),
  });
  const hasStarted = useRef(false);
  const showTarget = useEffectEvent(() => {
    if (target !== undefined)
      virtual.scrollToIndex(initial, { align: hasStarted.current ? 'auto' : 'start' });
    else if (isFollowing && !hasStarted.current) virtual.scrollToEnd();
    hasStarted.current = true;
  });
  useEffect(() => showTarget(), [target]);
  useListKeys(scroller, count, (index) => virtual.scrollToIndex(index));
  return (
    <div
      ref={scroller}
      className={cn('min-h-0 flex-1 overflow-y-auto', className)}
      tabIndex={0}
      aria-label={label}
      role="region"
    >
      <ol aria-label={label} className="relative" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map(({ index, key, start }) => {
          const entry = entryAt(index);
          return (
            <li
              key={key}
              ref={virtual.measureElement}
              data-index={index}
              aria-setsize={count}
              aria-posinset={index + 1}
              className="absolute inset-x-0 top-0"
              style={{ transform: `translateY(${start}px)` }}
            >
              {entry === undefined ? (
                <div className="px-4 py-3 md:px-6" style={{ height: estimate }}>
                  <Skeleton className="h-full" />
                </div>
              ) : (
                children(entry)
              )}
            </li>
          );
        })}
      </ol>
    </div>
  );
}

/** Reads the next page of a list that does not read it itself. Says why the last try failed. */
export const NextPage = (props: { query: UseInfiniteQueryResult; label: string }) => {
  const { error, isFetching, fetchNextPage } = props.query;
  return (
    <div className="grid shrink-0 justify-items-start gap-2 p-1">
      {error && <Alert title={error.message} />}
      <Button size="small" disabled={isFetching} onClick={() => void fetchNextPage()}>
        {props.label}
      </Button>
    </div>
  );
};

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
  const { data: rows = [], hasNextPage, isFetching, isFetchNextPageError, fetchNextPage } = query;
  const [end, setEnd] = useState(0);
  const isAtEnd = end >= rows.length - 1;
  useEffect(() => {
    if (isAtEnd && hasNextPage && !isFetching && !isFetchNextPageError) void fetchNextPage();
  }, [isAtEnd, hasNextPage, isFetching, isFetchNextPageError, fetchNextPage]);
  if (query.data?.length === 0) return empty;
  return (
    <Loaded query={query}>
      {() => (
        <>
          <EntryList
            {...list}
            count={rows.length}
            entryAt={(index) => rows[index]}
            keyOf={(index) => idOf(rows[index]!)}
            onRange={(range) => setEnd(range.end)}
          />
          {isFetchNextPageError && <NextPage query={query} label="Try again" />}
        </>
      )}
    </Loaded>
  );
}

/** On the link of a row: the whole row opens it. */
export const ROW_LINK =
  'block truncate font-medium after:absolute after:inset-0 focus-visible:outline-none focus-visible:after:outline-2 focus-visible:after:-outline-offset-2 focus-visible:after:outline-ring';
