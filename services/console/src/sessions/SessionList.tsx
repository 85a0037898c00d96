import { ArrowUp } from 'lucide-react';
import { useState } from 'react';
import { Button, LinkButton } from '../components/Button.tsx';
import { cn } from '../components/classNames.ts';
import { Alert, EmptyState, ErrorState, Time } from '../components/view.tsx';
import { EntryList } from '../components/EntryList.tsx';
import type { SessionFilters } from './search.ts';
import { COLUMNS, SessionRow } from './SessionRow.tsx';
import { useAgentNames } from '../agents/useNames.ts';
import { useSessionPages } from './useSessionPages.ts';

const ROW_PX = 44;
const NUMBER = new Intl.NumberFormat();

const knownCount = (count: number, isComplete: boolean): string =>
  count === 1 && isComplete
    ? '1 session'
    : `${NUMBER.format(count)} sessions${isComplete ? '' : ' loaded, more below'}`;

interface SessionListProps {
  filters: SessionFilters;
  isLive: boolean;
  onReset: () => void;
}

/** The sessions that match the filters. */
export function SessionList({ filters, isLive, onReset }: SessionListProps) {
  const agents = useAgentNames();
  const [isFocused, setFocused] = useState(false);
  const [range, setRange] = useState({ start: 0, end: 40 });
  const sessions = useSessionPages({
    filters,
    range,
    isLive,
    // Rows do not move under the focus.
    isAtStart: range.start === 0 && !isFocused,
  });
  const { count, isComplete, newCount, error, retry, lag } = sessions;
  if (error && count === 0) return <ErrorState error={error} onRetry={retry} />;
  if (isComplete && count === 0)
    return Object.keys(filters).length > 0 ? (
      <EmptyState
        title="No session matches"
        action={<Button onClick={onReset}>Clear the filters</Button>}
      >
        {filters.q === undefined
          ? 'Remove a filter.'
          : 'All words must occur in one turn that has ended. An asterisk finds beginnings: inv*'}
      </EmptyState>
    ) : (
      <EmptyState
        title="No sessions yet"
        action={<LinkButton to="/agents">Choose an agent</LinkButton>}
      >
        A session begins when you chat with an agent, or when a client runs one.
      </EmptyState>
    );
  return (
    <div
      className="relative flex min-h-0 flex-1 flex-col"
      onFocus={({ target }) => setFocused(target.closest('li') !== null)}
      onBlur={() => setFocused(false)}
    >
      {lag && (
        <p role="status" className="border-b bg-warning/10 px-4 py-2 text-xs md:px-6">
          The search index is behind. Turns that ended after <Time value={lag} /> may be missing.
        </p>
      )}
      {error && (
        <Alert title={error.message}>
          <Button variant="outline" size="small" className="w-fit" onClick={retry}>
            Try again
          </Button>
        </Alert>
      )}
      {newCount > 0 && (
        <Button
          size="small"
          className="absolute top-10 left-1/2 z-20 -translate-x-1/2 shadow-md"
          onClick={() => void sessions.showNew()}
        >
          <ArrowUp aria-hidden /> {newCount}
          {sessions.hasMoreNew && '+'} new
        </Button>
      )}
      <div className={cn('border-b px-4 py-1.5 text-xs text-muted-foreground md:px-6', COLUMNS)}>
        <span aria-live="polite">{count > 0 && knownCount(count, isComplete)}</span>
        {['Agent', 'Turns', 'Status', 'Began', 'Last event'].map((name) => (
          <span
            key={name}
            aria-hidden
            className={cn(
              'hidden md:block',
              name === 'Turns' && 'text-right',
              name === 'Last event' && 'md:hidden 2xl:block',
            )}
          >
            {name}
          </span>
        ))}
      </div>
      <EntryList
        key={sessions.generation}
        label="Sessions"
        count={isComplete ? count : count + 1}
        entryAt={sessions.rowAt}
        estimate={ROW_PX}
        onRange={setRange}
      >
        {(session) => <SessionRow session={session} agents={agents} />}
      </EntryList>
    </div>
  );
}
