import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useParams, useSearch } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';
import { ApiError } from '../../api/apiError.ts';
import { Button } from '../../components/Button.tsx';
import { cn } from '../../components/classNames.ts';
import { View } from '../../components/layout.tsx';
import { EmptyState, Loaded } from '../../components/states.tsx';
import { shortId } from '../SessionRow.tsx';
import { EventRow } from './EventRow.tsx';
import { NumberedList } from './NumberedList.tsx';
import { SessionActions } from './SessionActions.tsx';
import { SessionFacts } from './SessionFacts.tsx';
import { readEventsBetween, readTurnsFor, sessionQuery } from './sessionQueries.ts';
import { TurnCard } from './TurnCard.tsx';

const TABS = { transcript: 'Transcript', timeline: 'Timeline', events: 'Events' } as const;
const PAGE_TURNS = 20;
const PAGE_EVENTS = 100;
/** The height of an entry before it is measured, in pixels. */
const ESTIMATES = { transcript: 260, timeline: 130, events: 41 } as const;

/** One session: its transcript, what its turns did with their time, and its events. */
export function SessionView() {
  const { sessionId } = useParams({ from: '/sessions/$sessionId' });
  const { tab = 'transcript', turn, event } = useSearch({ from: '/sessions/$sessionId' });
  const client = useQueryClient();
  const query = useQuery(sessionQuery(sessionId));
  const revision = query.data?.session.revision;
  const known = useRef<string>(undefined);
  useEffect(() => {
    if (revision === undefined) return;
    const state = `${sessionId} ${revision}`;
    if (known.current?.startsWith(sessionId) && known.current !== state)
      void client.invalidateQueries({ queryKey: ['session', sessionId, 'entries'] });
    known.current = state;
  }, [client, sessionId, revision]);
  const session = query.data?.session;
  const isErased = query.error instanceof ApiError && query.error.code === 'session_erased';
  return (
    <View
      title={session?.title ?? `Session ${shortId(sessionId)}`}
      className="flex flex-col overflow-hidden p-0 md:p-0"
      actions={session && !isErased && <SessionActions session={session} />}
    >
      {isErased ? (
        <EmptyState
          title="This session was erased"
          action={
            <Button asChild variant="outline">
              <Link to="/audit" search={{ session: sessionId }}>
                Verify its events
              </Link>
            </Button>
          }
        >
          Its texts are gone. Its events remain in the log without them, and can still be proven.
        </EmptyState>
      ) : (
        <Loaded query={query}>
          {({ session: loaded, first }) => (
            <>
              <SessionFacts session={loaded} />
              <nav aria-label="Parts of the session" className="flex gap-1 border-b px-3 md:px-5">
                {(Object.keys(TABS) as (keyof typeof TABS)[]).map((each) => (
                  <Link
                    key={each}
                    to="/sessions/$sessionId"
                    params={{ sessionId }}
                    search={{
                      ...(each !== 'transcript' && { tab: each }),
                      ...(each !== 'events' && turn !== undefined && { turn }),
                    }}
                    aria-current={each === tab ? 'page' : undefined}
                    className={cn(
                      '-mb-px border-b-2 border-transparent px-2 py-2 text-muted-foreground hover:text-foreground',
                      each === tab && 'border-primary font-medium text-foreground',
                    )}
                  >
                    {TABS[each]}
                  </Link>
                ))}
              </nav>
              {tab === 'events' ? (
                <NumberedList
                  key={sessionId}
                  label={TABS[tab]}
                  queryKey={['session', sessionId, 'entries', tab]}
                  count={loaded.revision + 1}
                  pageSize={PAGE_EVENTS}
                  read={(from, end, signal) =>
                    readEventsBetween(sessionId, { from, to: end - 1 }, signal)
                  }
                  estimate={ESTIMATES[tab]}
                  target={event}
                >
                  {(each) => (
                    <EventRow
                      sessionId={sessionId}
                      event={each}
                      isTarget={each.revision === event}
                    />
                  )}
                </NumberedList>
              ) : loaded.turn_count < first ? (
                <EmptyState title="No turns yet">
                  Continue in the chat to add the first one.
                </EmptyState>
              ) : (
                <NumberedList
                  key={`${sessionId} ${tab}`}
                  label={TABS[tab]}
                  queryKey={['session', sessionId, 'entries', tab]}
                  count={loaded.turn_count - first + 1}
                  pageSize={PAGE_TURNS}
                  read={(start, end, signal) => {
                    const range = { sessionId, from: first + start, to: first + end - 1 };
                    return readTurnsFor(tab, range, signal);
                  }}
                  estimate={ESTIMATES[tab]}
                  target={turn === undefined ? undefined : Math.max(turn - first, 0)}
                >
                  {(timed) => (
                    <TurnCard
                      session={loaded}
                      tab={tab}
                      isTarget={timed.turn.turn === turn}
                      {...timed}
                    />
                  )}
                </NumberedList>
              )}
            </>
          )}
        </Loaded>
      )}
    </View>
  );
}
