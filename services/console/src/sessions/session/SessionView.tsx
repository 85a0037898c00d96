import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useParams, useSearch } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';
import { ApiError } from '../../api/apiError.ts';
import { LinkButton } from '../../components/Button.tsx';
import { cn } from '../../components/classNames.ts';
import { EmptyState, Loaded, View } from '../../components/view.tsx';
import { SessionLink } from '../SessionLink.tsx';
import { shortId } from '../SessionRow.tsx';
import { EventRow } from './EventRow.tsx';
import { NumberedList } from './NumberedList.tsx';
import { SessionActions, SessionFacts } from './SessionHead.tsx';
import { eventPageQuery, PAGE_SIZES, sessionQuery, turnPageQuery } from './sessionQueries.ts';
import { TurnCard } from './TurnCard.tsx';

/** The lists of a session; the height of an entry before it is measured, in pixels. */
const TABS = {
  transcript: { label: 'Transcript', estimate: 260, pageSize: PAGE_SIZES.turns },
  timeline: { label: 'Timeline', estimate: 130, pageSize: PAGE_SIZES.turns },
  events: { label: 'Events', estimate: 41, pageSize: PAGE_SIZES.events },
} as const;
type Tab = keyof typeof TABS;

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
            <LinkButton to="/audit" search={{ session: sessionId }}>
              Verify its events
            </LinkButton>
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
                {(Object.keys(TABS) as Tab[]).map((each) => (
                  <SessionLink
                    key={each}
                    id={sessionId}
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
                    {TABS[each].label}
                  </SessionLink>
                ))}
              </nav>
              {tab === 'events' ? (
                <NumberedList
                  key={sessionId}
                  {...TABS.events}
                  count={loaded.revision + 1}
                  pageQuery={(page) => eventPageQuery(sessionId, page)}
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
                  {...TABS[tab]}
                  count={loaded.turn_count - first + 1}
                  pageQuery={(page) => turnPageQuery(sessionId, first, page)}
                  target={turn && Math.max(turn - first, 0)}
                >
                  {(each) => (
                    <TurnCard
                      session={loaded}
                      tab={tab}
                      turn={each}
                      isTarget={each.turn === turn}
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
