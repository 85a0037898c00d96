import { useNavigate, useSearch } from '@tanstack/react-router';
import { ArrowUp, Pause, Play } from 'lucide-react';
import { useState } from 'react';
import { Button, LinkButton } from '../components/Button.tsx';
import { cn } from '../components/classNames.ts';
import { Alert, EmptyState, ErrorState, Time, View } from '../components/view.tsx';
import { EntryList } from '../components/EntryList.tsx';
import type { SessionFilters } from './search.ts';
import { COLUMNS, SessionRow } from './SessionRow.tsx';
import { SessionFilterBar } from './SessionFilterBar.tsx';
import { useSessionPages } from './useSessionPages.ts';

const ROW_PX = 44;

const knownCount = (count: number, isComplete: boolean): string =>
  count === 1 && isComplete
    ? '1 session'
    : `${count.toLocaleString()} sessions${isComplete ? '' : ' loaded, more below'}`;

/** The sessions that match the filters. */
function SessionList(props: { filters: SessionFilters; isLive: boolean; onReset: () => void }) {
  const { filters, isLive, onReset } = props;
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
          <Button size="small" className="w-fit" onClick={retry}>
            Try again
          </Button>
        </Alert>
      )}
      {newCount > 0 && (
        <Button
          variant="primary"
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
        {(session) => <SessionRow session={session} />}
      </EntryList>
    </div>
  );
}

/** The account's sessions: filters, search, and a list that follows new ones. */
export function SessionsView() {
  const filters = useSearch({ from: '/sessions' });
  const navigate = useNavigate({ from: '/sessions' });
  const [isLive, setLive] = useState(true);
  return (
    <View
      title="Sessions"
      className="flex flex-col overflow-hidden p-0 md:p-0"
      actions={
        <Button size="small" onClick={() => setLive(!isLive)}>
          {isLive ? <Pause aria-hidden /> : <Play aria-hidden />}
          {isLive ? 'Pause updates' : 'Resume updates'}
        </Button>
      }
    >
      <SessionFilterBar />
      <SessionList
        key={JSON.stringify(filters)}
        filters={filters}
        isLive={isLive}
        onReset={() => void navigate({ search: {}, replace: true })}
      />
    </View>
  );
}
