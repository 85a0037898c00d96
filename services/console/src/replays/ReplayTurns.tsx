import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useRef } from 'react';
import { Button } from '../components/Button.tsx';
import { formatCount, type ChartRow, type ChartSeries } from '../components/charts/ChartFrame.tsx';
import { LineChart } from '../components/charts/LineChart.tsx';
import { cn } from '../components/classNames.ts';
import { Badge, Skeleton } from '../components/layout.tsx';
import { EmptyState, ErrorState } from '../components/states.tsx';
import { useListKeys } from '../components/useListKeys.ts';
import { comparedTurns, endOfId, OutcomeBadge } from './describe.tsx';
import { formatMs } from './ReplaySummary.tsx';
import { turnsQuery, type Replay, type ReplayTurn } from './replayQueries.ts';
import { formatTurnId, TURN_FILTERS, type TurnFilter } from './search.ts';

const FILTER_LABELS: Readonly<Record<TurnFilter, string>> = {
  changed: 'Changed',
  failed: 'Failed',
  checks_failed: 'Check failed',
  same: 'Same',
  skipped: 'Skipped',
  all: 'All',
};
const EMPTY: Readonly<Record<TurnFilter, string>> = {
  changed: 'No answer changed',
  failed: 'No turn failed',
  checks_failed: 'No turn failed a check',
  same: 'No answer is the same',
  skipped: 'No turn was skipped',
  all: 'No turn was compared yet',
};
const LATENCY: readonly ChartSeries[] = [
  { key: 'recorded', label: 'Recorded', look: 1 },
  { key: 'replayed', label: 'Replayed', look: 2 },
];
const COLUMNS = 'md:grid md:grid-cols-[minmax(0,1fr)_7rem_9rem_11rem] md:items-center md:gap-4';
const ROW_PX = 40;
const PHONE_ROW_PX = 80;
const rowHeight = (): number => (matchMedia('(min-width: 768px)').matches ? ROW_PX : PHONE_ROW_PX);

/** How many turns a filter shows; of turns with a failed check only those of checks are counted. */
function countOf(filter: TurnFilter, { turns, checks }: Replay['sums']): number {
  if (filter === 'all') return comparedTurns(turns);
  return filter === 'checks_failed' ? checks.failed : turns[filter];
}

const toolChanges = ({ tools }: ReplayTurn): number =>
  tools.added + tools.missing + tools.changed + tools.unanswered;

function TurnRow({ turn, replayId, filter }: TurnListProps & { turn: ReplayTurn }) {
  const { session_id, outcome, code, recorded, replayed, checks } = turn;
  const failedChecks = checks.filter(({ passed }) => !passed).length;
  return (
    <div className={cn(COLUMNS, 'grid h-full content-center gap-1 px-4')}>
      <Link
        to="/replays/$replayId"
        params={{ replayId }}
        search={{ ...(filter !== 'changed' && { only: filter }), turn: formatTurnId(turn) }}
        className="min-w-0 truncate font-medium after:absolute after:inset-0 focus-visible:outline-none focus-visible:after:outline-2 focus-visible:after:-outline-offset-2 focus-visible:after:outline-ring"
        title={session_id}
      >
        Turn {turn.turn}{' '}
        <span className="font-normal text-muted-foreground">of session {endOfId(session_id)}</span>
      </Link>
      <span className="flex flex-wrap gap-1">
        <OutcomeBadge outcome={outcome} />
        {code !== undefined && <span className="sr-only">{code}</span>}
      </span>
      <span className="flex gap-1">
        {failedChecks > 0 && <Badge tone="destructive">check failed</Badge>}
        {toolChanges(turn) > 0 && <Badge>tools differ</Badge>}
        {code !== undefined && <code className="truncate text-xs">{code}</code>}
      </span>
      <span className="text-xs text-muted-foreground tabular-nums md:text-right">
        {formatMs(recorded.duration_ms ?? 0)} →{' '}
        {replayed?.duration_ms === undefined ? '–' : formatMs(replayed.duration_ms)}
      </span>
    </div>
  );
}

interface TurnListProps {
  replayId: string;
  filter: TurnFilter;
}

const toChartRow = (turn: ReplayTurn): ChartRow => {
  const { recorded, replayed } = turn;
  return {
    id: formatTurnId(turn),
    label: `Turn ${turn.turn} of ${endOfId(turn.session_id)}`,
    tick: String(turn.turn),
    values: {
      ...(recorded.duration_ms !== undefined && { recorded: recorded.duration_ms }),
      ...(replayed?.duration_ms !== undefined && { replayed: replayed.duration_ms }),
    },
  };
};

function TurnList({ replayId, filter, sums, isRunning }: ReplayTurnsProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const query = useInfiniteQuery(turnsQuery(replayId, filter));
  const { data, error, refetch, fetchNextPage, hasNextPage, isFetchingNextPage } = query;
  const turns = data?.pages.flatMap(({ rows }) => rows) ?? [];
  const virtual = useVirtualizer({
    count: turns.length,
    getScrollElement: () => scroller.current,
    estimateSize: rowHeight,
    overscan: 8,
  });
  useListKeys(scroller, turns.length, (index) => virtual.scrollToIndex(index));
  const items = virtual.getVirtualItems();
  const isAtEnd = (items.at(-1)?.index ?? 0) >= turns.length - 1;
  useEffect(() => {
    if (isAtEnd && hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [isAtEnd, hasNextPage, isFetchingNextPage, fetchNextPage]);
  const isBehind =
    !hasNextPage && filter !== 'checks_failed' && countOf(filter, sums) > turns.length;
  // An empty list may change: nobody reads it yet.
  const isFirst = isBehind && turns.length === 0;
  useEffect(() => {
    if (isFirst && data) void refetch();
  }, [isFirst, data, refetch]);

  if (error && !data) return <ErrorState error={error} onRetry={() => void refetch()} />;
  if (!data) return <Skeleton className="h-40" />;
  if (turns.length === 0)
    return (
      <EmptyState title={isRunning ? 'No such turn yet' : EMPTY[filter]}>
        {isRunning
          ? 'Turns appear here when they have been compared.'
          : 'Choose other turns above.'}
      </EmptyState>
    );
  return (
    <>
      {isRunning && isBehind && (
        <Button variant="outline" size="small" onClick={() => void refetch()}>
          Show the turns that were compared meanwhile
        </Button>
      )}
      <div
        ref={scroller}
        className="max-h-[70dvh] min-h-40 overflow-y-auto rounded-lg border bg-card"
      >
        <ul aria-label="Turns" className="relative" style={{ height: virtual.getTotalSize() }}>
          {items.map(({ index, start, size }) => {
            const turn = turns[index]!;
            return (
              <li
                key={formatTurnId(turn)}
                data-index={index}
                className="absolute inset-x-0 top-0 border-b hover:bg-muted/60"
                style={{ height: size, transform: `translateY(${start}px)` }}
              >
                <TurnRow turn={turn} replayId={replayId} filter={filter} />
              </li>
            );
          })}
        </ul>
      </div>
      {turns.length > 1 && (
        <LineChart
          title="Latency of these turns"
          series={LATENCY}
          rows={turns.map(toChartRow)}
          format={formatMs}
        />
      )}
    </>
  );
}

interface ReplayTurnsProps extends TurnListProps {
  sums: Replay['sums'];
  isRunning: boolean;
}

/** The compared turns, narrowed to those with one outcome. */
export function ReplayTurns(props: ReplayTurnsProps) {
  const { replayId, filter, sums } = props;
  const shown = TURN_FILTERS.filter((each) => each !== 'checks_failed' || sums.checks.failed > 0);
  return (
    <section aria-label="Compared turns" className="grid grid-cols-[minmax(0,1fr)] gap-3">
      <nav aria-label="Turns to show" className="flex flex-wrap gap-1">
        {shown.map((each) => (
          <Button key={each} variant={each === filter ? 'outline' : 'ghost'} size="small" asChild>
            <Link
              to="/replays/$replayId"
              params={{ replayId }}
              search={each === 'changed' ? {} : { only: each }}
              aria-current={each === filter ? 'true' : undefined}
              replace
            >
              {FILTER_LABELS[each]}
              <span className="text-muted-foreground tabular-nums">
                {formatCount(countOf(each, sums))}
              </span>
            </Link>
          </Button>
        ))}
      </nav>
      <TurnList key={filter} {...props} />
    </section>
  );
}
