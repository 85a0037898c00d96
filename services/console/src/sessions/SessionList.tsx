import { useVirtualizer } from '@tanstack/react-virtual';
import { ArrowUp, RotateCw } from 'lucide-react';
import { useEffect, useEffectEvent, useRef, useState } from 'react';
import { Link } from '@tanstack/react-router';
import { Button } from '../components/Button.tsx';
import { EmptyState, ErrorState } from '../components/states.tsx';
import { Time } from '../components/Time.tsx';
import { useListKeys } from '../components/useListKeys.ts';
import type { SessionFilters } from './search.ts';
import { SessionRow, SkeletonRow, COLUMNS } from './SessionRow.tsx';
import { useAgents } from './useAgents.ts';
import { useSessionPages } from './useSessionPages.ts';

/** Rows have two lines on a phone. */
const rowHeight = (): number => (matchMedia('(min-width: 768px)').matches ? 44 : 58);
const HEADINGS = [
  ['Session', ''],
  ['Agent', ''],
  ['Turns', 'text-right'],
  ['Status', ''],
  ['Began', ''],
  ['Last event', 'hidden 2xl:block'],
] as const;
const NUMBER = new Intl.NumberFormat();
/** Within so many pixels of its beginning, the list is at its start. */
const AT_START_PX = 8;

interface SessionListProps {
  filters: SessionFilters;
  isLive: boolean;
  /** Gets what is known of the number of sessions. */
  onCount: (known: string | undefined) => void;
  onReset: () => void;
}

const knownCount = (count: number, isComplete: boolean): string =>
  count === 1 && isComplete
    ? '1 session'
    : `${NUMBER.format(count)} sessions${isComplete ? '' : ' loaded, more below'}`;

/** The sessions that match the filters. Only the rows on screen are in the document. */
export function SessionList({ filters, isLive, onCount, onReset }: SessionListProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const agents = useAgents();
  const [isFocused, setFocused] = useState(false);
  const [range, setRange] = useState({ start: 0, end: 40, isAtStart: true });
  const sessions = useSessionPages({
    filters,
    range,
    isLive,
    isAtStart: range.isAtStart && !isFocused,
  });
  const { count, isComplete, newCount } = sessions;
  const virtual = useVirtualizer({
    count: isComplete ? count : count + 1,
    getScrollElement: () => scroller.current,
    estimateSize: rowHeight,
    overscan: 10,
    onChange: ({ range: visible, scrollOffset }) => {
      const next = {
        start: visible?.startIndex ?? 0,
        end: visible?.endIndex ?? 0,
        isAtStart: (scrollOffset ?? 0) <= AT_START_PX,
      };
      setRange((now) =>
        now.start === next.start && now.end === next.end && now.isAtStart === next.isAtStart
          ? now
          : next,
      );
    },
  });
  const measureAgain = useEffectEvent(() => virtual.measure());
  useEffect(() => {
    const isWide = matchMedia('(min-width: 768px)');
    isWide.addEventListener('change', measureAgain);
    return () => isWide.removeEventListener('change', measureAgain);
  }, []);
  const known = sessions.isLoading || sessions.error ? undefined : knownCount(count, isComplete);
  useEffect(() => onCount(known), [known, onCount]);
  useListKeys(scroller, count, (index) => virtual.scrollToIndex(index));
  const showNew = (): void => {
    virtual.scrollToOffset(0);
    void sessions.showNew();
  };

  if (sessions.error && count === 0)
    return <ErrorState error={sessions.error} onRetry={sessions.retry} />;
  if (isComplete && count === 0) {
    const isFiltered = Object.keys(filters).some((name) => name !== 'order');
    return isFiltered ? (
      <EmptyState
        title="No session matches"
        action={
          <Button variant="outline" onClick={onReset}>
            Clear the filters
          </Button>
        }
      >
        {filters.q === undefined
          ? 'Remove a filter.'
          : 'All words must occur in one turn that has ended. An asterisk finds beginnings: inv*'}
      </EmptyState>
    ) : (
      <EmptyState
        title="No sessions yet"
        action={
          <Button asChild>
            <Link to="/agents">Choose an agent</Link>
          </Button>
        }
      >
        A session begins when you chat with an agent, or when a client runs one.
      </EmptyState>
    );
  }
  return (
    <div className="relative flex min-h-0 flex-1 flex-col">
      {sessions.lag && (
        <p role="status" className="border-b bg-warning/10 px-4 py-2 text-xs md:px-6">
          The search index is behind. Turns that ended after <Time value={sessions.lag} /> may be
          missing.
        </p>
      )}
      {sessions.error && (
        <p role="alert" className="flex items-center gap-2 border-b px-4 py-1 text-xs md:px-6">
          {sessions.error.message}
          <Button variant="ghost" size="small" onClick={sessions.retry}>
            <RotateCw aria-hidden /> Try again
          </Button>
        </p>
      )}
      {newCount > 0 && (
        <div className="pointer-events-none absolute inset-x-0 top-12 z-10 flex justify-center">
          <Button size="small" className="pointer-events-auto shadow-md" onClick={showNew}>
            <ArrowUp aria-hidden /> {newCount}
            {sessions.hasMoreNew && '+'} new
          </Button>
        </div>
      )}
      <div
        role="table"
        aria-label="Sessions"
        aria-rowcount={isComplete ? count + 1 : -1}
        className="flex min-h-0 flex-1 flex-col"
      >
        <div
          role="rowgroup"
          className="hidden border-b px-6 text-xs text-muted-foreground md:block"
        >
          <div role="row" aria-rowindex={1} className={COLUMNS}>
            {HEADINGS.map(([name, className]) => (
              <span key={name} role="columnheader" className={className}>
                {name}
              </span>
            ))}
          </div>
        </div>
        <div
          ref={scroller}
          role="rowgroup"
          className="min-h-0 flex-1 overflow-y-auto"
          // Rows do not move under the focus.
          onFocus={() => setFocused(true)}
          onBlur={() => setFocused(false)}
        >
          <div role="presentation" className="relative" style={{ height: virtual.getTotalSize() }}>
            {virtual.getVirtualItems().map(({ index, start, size }) => {
              const session = sessions.rowAt(index);
              return session ? (
                <SessionRow
                  key={index}
                  session={session}
                  agents={agents}
                  index={index}
                  start={start}
                  size={size}
                />
              ) : (
                <SkeletonRow key={index} index={index} start={start} size={size} />
              );
            })}
          </div>
        </div>
      </div>
    </div>
  );
}
