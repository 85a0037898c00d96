import { Link } from '@tanstack/react-router';
import { memo, type CSSProperties } from 'react';
import type { Schema } from '../api/client.ts';
import { cn } from '../components/classNames.ts';
import { Badge, Skeleton } from '../components/layout.tsx';
import { Time } from '../components/Time.tsx';
import { agentName } from './useAgents.ts';
import type { ListedSession } from './useSessionPages.ts';

/** The columns of the list on a wide screen. */
export const COLUMNS =
  'md:grid md:grid-cols-[minmax(0,1fr)_9rem_3.5rem_5rem_11.5rem] md:items-center md:gap-4 md:py-1.5 2xl:grid-cols-[minmax(0,1fr)_11rem_3.5rem_5rem_11.5rem_11.5rem]';
const ROW = 'absolute inset-x-0 top-0 border-b px-4 py-2 hover:bg-muted/60 md:px-6';
const MOST_LABELS = 3;

/** The end of an id, which tells ids of the same day apart. */
export const shortId = (id: string): string => `…${id.slice(-8)}`;

interface RowProps {
  index: number;
  /** The place of the row in the list, in pixels. */
  start: number;
  size: number;
}

const placeOf = ({ start, size }: Pick<RowProps, 'start' | 'size'>): CSSProperties => ({
  transform: `translateY(${start}px)`,
  height: size,
});

const TurnLinks = ({ session_id, matches }: { session_id: string; matches: readonly number[] }) => (
  <span className="flex shrink-0 items-center gap-1 text-xs">
    {matches.slice(0, 5).map((turn) => (
      <Link
        key={turn}
        to="/sessions/$sessionId"
        params={{ sessionId: session_id }}
        search={{ turn }}
        className="relative z-10 rounded-md border px-1.5 py-0.5 text-primary hover:bg-muted"
      >
        turn {turn}
      </Link>
    ))}
    {matches.length > 5 && <span className="text-muted-foreground">+{matches.length - 5}</span>}
  </span>
);

/** A session in the list. The whole row opens it. */
export const SessionRow = memo(function SessionRow({
  session: { session_id, agent_id, title, labels, turn_count, status, updated_at, ...session },
  agents,
  index,
  start,
  size,
}: RowProps & {
  session: ListedSession;
  agents: readonly Schema<'Agent'>[];
}) {
  const shown = Object.entries(labels).slice(0, MOST_LABELS);
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      data-index={index}
      className={cn(ROW, COLUMNS, 'focus-within:bg-accent')}
      style={placeOf({ start, size })}
    >
      <div role="cell" className="flex min-w-0 items-center gap-2">
        <Link
          to="/sessions/$sessionId"
          params={{ sessionId: session_id }}
          preload={false}
          className={cn(
            'min-w-0 truncate after:absolute after:inset-0',
            title === null ? 'text-muted-foreground' : 'font-medium',
          )}
        >
          {title ?? `Session ${shortId(session_id)}`}
        </Link>
        {session.matches && <TurnLinks session_id={session_id} matches={session.matches} />}
        {session.forked_from && <Badge>Fork</Badge>}
        <span className="hidden min-w-0 flex-1 basis-0 gap-1 overflow-hidden lg:flex">
          {shown.map(([name, value]) => (
            <Badge key={name} className="max-w-40 shrink-0">
              <span className="truncate">
                {name}: {value}
              </span>
            </Badge>
          ))}
        </span>
      </div>
      <div className="contents max-md:flex max-md:items-center max-md:gap-3 max-md:text-xs max-md:text-muted-foreground">
        <div role="cell" className="truncate max-md:flex-1">
          {agentName(agents, agent_id)}
        </div>
        <div role="cell" className="tabular-nums md:text-right">
          {turn_count}
          <span className="md:hidden">{turn_count === 1 ? ' turn' : ' turns'}</span>
        </div>
        <div role="cell">
          {status === 'running' ? (
            <Badge tone="success">Running</Badge>
          ) : (
            <span className="text-muted-foreground max-md:sr-only">Idle</span>
          )}
        </div>
        <div role="cell" className="truncate text-muted-foreground tabular-nums">
          <Time value={session.created_at} className="relative z-10" />
        </div>
        <div role="cell" className="hidden truncate text-muted-foreground tabular-nums 2xl:block">
          <Time value={updated_at} className="relative z-10" />
        </div>
      </div>
    </div>
  );
});

/** A row that is being loaded. */
export const SkeletonRow = ({ index, start, size }: RowProps) => (
  <div role="row" aria-rowindex={index + 2} className={ROW} style={placeOf({ start, size })}>
    <div role="cell">
      <span className="sr-only">Loading</span>
      <Skeleton className="mt-1 h-4 w-1/3" />
    </div>
  </div>
);
