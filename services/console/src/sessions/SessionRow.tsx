import { memo } from 'react';
import type { Schema } from '../api/client.ts';
import { cn } from '../components/classNames.ts';
import { Badge, Time } from '../components/view.tsx';
import { SessionLink } from './SessionLink.tsx';
import { useAgentNames } from '../agents/agentQueries.ts';

/** The columns of the list on a wide screen. */
export const COLUMNS =
  'md:grid md:grid-cols-[minmax(0,1fr)_9rem_3.5rem_5rem_11.5rem] md:items-center md:gap-4 2xl:grid-cols-[minmax(0,1fr)_11rem_3.5rem_5rem_11.5rem_11.5rem]';
const MOST_LABELS = 3;
const MOST_MATCHES = 5;

/** The end of an id, which tells ids of the same day apart. */
export const shortId = (id: string): string => `…${id.slice(-8)}`;

/** A session in the list. The whole row opens it. */
export const SessionRow = memo(({ session }: { session: Schema<'ListedSession'> }) => {
  const agents = useAgentNames();
  const { session_id, title, turn_count, matches = [] } = session;
  return (
    <div
      className={cn(
        'relative border-b px-4 py-2 text-muted-foreground focus-within:bg-accent hover:bg-muted/60 md:h-11 md:px-6 md:py-0',
        COLUMNS,
      )}
    >
      <div className="flex min-w-0 items-center gap-2">
        <SessionLink
          id={session_id}
          preload={false}
          className={cn(
            'min-w-0 truncate after:absolute after:inset-0',
            title !== null && 'font-medium text-foreground',
          )}
        >
          {title ?? `Session ${shortId(session_id)}`}
        </SessionLink>
        {matches.slice(0, MOST_MATCHES).map((turn) => (
          <SessionLink
            key={turn}
            id={session_id}
            search={{ turn }}
            className="relative z-10 shrink-0 rounded-md border px-1.5 py-0.5 text-xs text-primary hover:bg-muted"
          >
            turn {turn}
          </SessionLink>
        ))}
        {session.forked_from && <Badge>Fork</Badge>}
        <span className="hidden min-w-0 flex-1 basis-0 gap-1 overflow-hidden lg:flex">
          {Object.entries(session.labels)
            .slice(0, MOST_LABELS)
            .map(([name, value]) => (
              <Badge key={name} className="max-w-40 shrink-0">
                <span className="truncate">
                  {name}: {value}
                </span>
              </Badge>
            ))}
        </span>
      </div>
      <div className="contents tabular-nums max-md:flex max-md:items-center max-md:gap-3 max-md:text-xs">
        <span className="truncate max-md:flex-1 md:text-foreground">
          {agents.get(session.agent_id) ?? session.agent_id}
        </span>
        <span className="md:text-right md:text-foreground">
          {turn_count}
          <span className="md:sr-only">{turn_count === 1 ? ' turn' : ' turns'}</span>
        </span>
        <span>
          {session.status === 'running' ? (
            <Badge tone="success">Running</Badge>
          ) : (
            <span className="max-md:sr-only">Idle</span>
          )}
        </span>
        <Time value={session.created_at} className="relative z-10 truncate" />
        <Time value={session.updated_at} className="relative z-10 hidden truncate 2xl:block" />
      </div>
    </div>
  );
});
