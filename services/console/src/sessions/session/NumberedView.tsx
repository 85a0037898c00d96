import { useQueries } from '@tanstack/react-query';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useEffectEvent, useRef, type ReactNode } from 'react';
import { ErrorState } from '../../components/states.tsx';
import { Skeleton } from '../../components/layout.tsx';
import { useListKeys } from '../../components/useListKeys.ts';

/** A list whose entries are numbered from 0, and of which pages can be read anywhere. */
interface NumberedList<Entry> {
  queryKey: readonly unknown[];
  count: number;
  pageSize: number;
  /** Reads the entries from `start` up to `end` (exclusive). */
  read: (start: number, end: number, signal: AbortSignal) => Promise<readonly Entry[]>;
}

/** The entries of a numbered list, of which only the pages with `range` (inclusive) are read. */
function useNumberedPages<Entry>(
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

/** As close to its end, a list follows what is added. */
const END_PX = 48;

interface NumberedViewProps<Entry> {
  label: string;
  list: NumberedList<Entry>;
  /** The height of an entry before it is measured, in pixels. */
  estimate: number;
  /** The entry that the address names; without one the view starts at the end. */
  target: number | undefined;
  children: (entry: Entry, index: number) => ReactNode;
}

/**
 * A long numbered list, of which only the entries on screen are loaded and in the document. It
 * follows its end while the reader is there.
 */
export function NumberedView<Entry>({
  label,
  list,
  estimate,
  target,
  children,
}: NumberedViewProps<Entry>) {
  const { count } = list;
  const scroller = useRef<HTMLDivElement>(null);
  const initial = Math.min(target ?? count - 1, count - 1);
  const virtual = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => estimate,
    initialOffset: () => Math.max(initial, 0) * estimate,
    overscan: 3,
    anchorTo: 'end',
    followOnAppend: true,
    scrollEndThreshold: END_PX,
  });
  const items = virtual.getVirtualItems();
  const range = { start: items[0]?.index ?? initial, end: items.at(-1)?.index ?? initial };
  const { entryAt, error, retry } = useNumberedPages(list, range);
  const hasStarted = useRef(false);
  const showTarget = useEffectEvent(() => {
    if (target !== undefined)
      virtual.scrollToIndex(initial, { align: hasStarted.current ? 'auto' : 'start' });
    else if (!hasStarted.current) virtual.scrollToEnd();
    hasStarted.current = true;
  });
  useEffect(() => showTarget(), [target]);
  useListKeys(scroller, count, (index) => virtual.scrollToIndex(index));
  if (error && items.every(({ index }) => entryAt(index) === undefined))
    return <ErrorState error={error} onRetry={retry} />;
  return (
    <div
      ref={scroller}
      className="min-h-0 flex-1 overflow-y-auto"
      tabIndex={0}
      aria-label={label}
      role="region"
    >
      <ol className="relative" style={{ height: virtual.getTotalSize() }}>
        {items.map(({ index, start }) => {
          const entry = entryAt(index);
          return (
            <li
              key={index}
              ref={virtual.measureElement}
              data-index={index}
              aria-setsize={count}
              aria-posinset={index + 1}
              className="absolute inset-x-0 top-0"
              style={{ transform: `translateY(${start}px)` }}
            >
              {entry === undefined ? (
                <div className="p-4" style={{ height: estimate }}>
                  <Skeleton className="h-full" />
                </div>
              ) : (
                children(entry, index)
              )}
            </li>
          );
        })}
      </ol>
    </div>
  );
}
