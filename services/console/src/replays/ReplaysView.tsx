import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useVirtualizer } from '@tanstack/react-virtual';
import { Plus } from 'lucide-react';
import { useEffect, useRef } from 'react';
import { Button } from '../components/Button.tsx';
import { formatCount } from '../components/charts/ChartFrame.tsx';
import { cn } from '../components/classNames.ts';
import { Skeleton, View } from '../components/layout.tsx';
import { EmptyState, ErrorState } from '../components/states.tsx';
import { Time } from '../components/Time.tsx';
import { useListKeys } from '../components/useListKeys.ts';
import { useAgents } from '../sessions/useAgents.ts';
import { comparedTurns, describeReplacements, OUTCOMES, StatusBadge } from './describe.tsx';
import { replaysQuery, type Replay } from './replayQueries.ts';

const COLUMNS =
  'grid gap-x-4 md:grid-cols-[minmax(0,1fr)_9rem_8rem_4rem_4.5rem_4rem_13rem] md:items-center';
const ROW_PX = 52;
const PHONE_ROW_PX = 104;
const COUNTED = ['same', 'changed', 'failed'] as const;

const rowHeight = (): number => (matchMedia('(min-width: 768px)').matches ? ROW_PX : PHONE_ROW_PX);

/** How far a replay is, as a bar whose parts are its outcomes. */
export function ProgressBar({ turns }: { turns: Replay['sums']['turns'] }) {
  return (
    <span aria-hidden className="flex h-1.5 w-full overflow-hidden rounded-full bg-muted">
      {OUTCOMES.map(({ key, look }) => (
        <span
          key={key}
          style={{
            width: `${(turns[key] / Math.max(turns.total, 1)) * 100}%`,
            background: `var(--chart-${look})`,
          }}
        />
      ))}
    </span>
  );
}

function ReplayRow({ replay, title }: { replay: Replay; title: string }) {
  const { replay_id, sums, created_at } = replay;
  const { turns } = sums;
  return (
    <div className={cn(COLUMNS, 'h-full content-center px-4 md:px-6')}>
      <span className="min-w-0">
        <Link
          to="/replays/$replayId"
          params={{ replayId: replay_id }}
          className="block truncate font-medium after:absolute after:inset-0 focus-visible:outline-none focus-visible:after:outline-2 focus-visible:after:-outline-offset-2 focus-visible:after:outline-ring"
        >
          {title}
        </Link>
        <span className="block truncate text-xs text-muted-foreground">{replay_id}</span>
      </span>
      <span>
        <StatusBadge {...replay} />
      </span>
      <span className="grid gap-1 text-xs text-muted-foreground tabular-nums">
        <span>
          {formatCount(comparedTurns(turns))} of {formatCount(turns.total)} turns
        </span>
        <ProgressBar turns={turns} />
      </span>
      <span className="flex gap-3 text-xs tabular-nums md:contents">
        {COUNTED.map((outcome) => (
          <span key={outcome} className="md:text-right md:text-sm">
            {formatCount(turns[outcome])} <span className="md:sr-only">{outcome}</span>
          </span>
        ))}
      </span>
      <Time value={created_at} className="text-xs text-muted-foreground md:text-right" />
    </div>
  );
}

function ReplayList() {
  const scroller = useRef<HTMLDivElement>(null);
  const agents = useAgents();
  const { data, error, refetch, fetchNextPage, hasNextPage, isFetchingNextPage } =
    useInfiniteQuery(replaysQuery);
  const replays = data?.pages.flatMap(({ rows }) => rows) ?? [];
  const virtual = useVirtualizer({
    count: replays.length,
    getScrollElement: () => scroller.current,
    estimateSize: rowHeight,
    overscan: 8,
  });
  useListKeys(scroller, replays.length, (index) => virtual.scrollToIndex(index));
  const items = virtual.getVirtualItems();
  const isAtEnd = (items.at(-1)?.index ?? 0) >= replays.length - 1;
  useEffect(() => {
    if (isAtEnd && hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [isAtEnd, hasNextPage, isFetchingNextPage, fetchNextPage]);

  if (error && !data) return <ErrorState error={error} onRetry={() => void refetch()} />;
  if (!data) return <Skeleton className="m-6 h-40" />;
  if (replays.length === 0)
    return (
      <EmptyState
        title="No replays yet"
        action={
          <Button asChild>
            <Link to="/replays/new">Start a replay</Link>
          </Button>
        }
      >
        A replay runs recorded sessions again, with another model or instruction for example, and
        compares the answers. The recorded sessions do not change.
      </EmptyState>
    );
  return (
    <div className="flex h-full flex-col">
      <div
        aria-hidden
        className={cn(COLUMNS, 'hidden border-b px-6 py-2 text-xs text-muted-foreground md:grid')}
      >
        {['Replaced', 'State', 'Progress', 'Same', 'Changed', 'Failed', 'Started'].map(
          (name, at) => (
            <span key={name} className={cn(at > 2 && 'text-right')}>
              {name}
            </span>
          ),
        )}
      </div>
      <div ref={scroller} className="min-h-0 flex-1 overflow-y-auto">
        <ul aria-label="Replays" className="relative" style={{ height: virtual.getTotalSize() }}>
          {items.map(({ index, start, size }) => {
            const replay = replays[index]!;
            return (
              <li
                key={replay.replay_id}
                data-index={index}
                className="absolute inset-x-0 top-0 border-b hover:bg-muted/60"
                style={{ height: size, transform: `translateY(${start}px)` }}
              >
                <ReplayRow
                  replay={replay}
                  title={describeReplacements(replay.replacements, agents)}
                />
              </li>
            );
          })}
        </ul>
      </div>
    </div>
  );
}

/** The replays of the account, newest first. */
export const ReplaysView = () => (
  <View
    title="Replays"
    description="Recorded sessions that ran again, and how the answers compare."
    actions={
      <Button asChild>
        <Link to="/replays/new">
          <Plus aria-hidden /> New replay
        </Link>
      </Button>
    }
    className="overflow-hidden p-0 md:p-0"
  >
    <ReplayList />
  </View>
);
