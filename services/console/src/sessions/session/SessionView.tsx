import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useParams, useSearch } from '@tanstack/react-router';
import { useEffect } from 'react';
import { ApiError } from '../../api/apiError.ts';
import { Button } from '../../components/Button.tsx';
import { cn } from '../../components/classNames.ts';
import { Skeleton, View } from '../../components/layout.tsx';
import { EmptyState, ErrorState } from '../../components/states.tsx';
import { SESSION_TABS, type SessionTab } from '../search.ts';
import { shortId } from '../SessionRow.tsx';
import { EventHistory } from './EventHistory.tsx';
import { SessionActions } from './SessionActions.tsx';
import { SessionFacts } from './SessionFacts.tsx';
import { firstTurnQuery, sessionQuery } from './sessionQueries.ts';
import { Timeline } from './Timeline.tsx';
import { Transcript } from './Transcript.tsx';

const TAB_LABELS = { transcript: 'Transcript', timeline: 'Timeline', events: 'Events' } as const;

function Tabs({ sessionId, shown }: { sessionId: string; shown: SessionTab }) {
  const { turn } = useSearch({ from: '/sessions/$sessionId' });
  return (
    <nav aria-label="Parts of the session" className="flex gap-1 border-b px-3 md:px-5">
      {SESSION_TABS.map((tab) => (
        <Link
          key={tab}
          from="/sessions/$sessionId"
          to="/sessions/$sessionId"
          params={{ sessionId }}
          search={{
            ...(tab !== 'transcript' && { tab }),
            ...(tab !== 'events' && turn !== undefined && { turn }),
          }}
          aria-current={tab === shown ? 'page' : undefined}
          className={cn(
            '-mb-px border-b-2 border-transparent px-2 py-2 text-muted-foreground hover:text-foreground',
            tab === shown && 'border-primary font-medium text-foreground',
          )}
        >
          {TAB_LABELS[tab]}
        </Link>
      ))}
    </nav>
  );
}

/** One session: its transcript, what its turns did with their time, and its events. */
export function SessionView() {
  const { sessionId } = useParams({ from: '/sessions/$sessionId' });
  const { tab = 'transcript', turn, event, json } = useSearch({ from: '/sessions/$sessionId' });
  const client = useQueryClient();
  const { data: session, error, refetch } = useQuery(sessionQuery(sessionId));
  const isOriginErased = session?.forked_from?.erased === true;
  const { data: firstTurn } = useQuery(firstTurnQuery(sessionId, isOriginErased));
  const revision = session?.revision;
  useEffect(() => {
    if (revision === undefined) return;
    void client.invalidateQueries({ queryKey: ['session', sessionId, 'entries'] });
  }, [client, sessionId, revision]);

  const title = session?.title ?? `Session ${shortId(sessionId)}`;
  if (error instanceof ApiError && error.code === 'session_erased')
    return (
      <View title={title}>
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
      </View>
    );
  if (error && !session)
    return (
      <View title={title}>
        <ErrorState error={error} onRetry={() => void refetch()} />
      </View>
    );
  if (!session || (isOriginErased && firstTurn === undefined))
    return (
      <View title={title}>
        <Skeleton className="h-24" />
      </View>
    );
  const turns = { session, first: firstTurn ?? 1, target: turn };
  const hasTurns = session.turn_count >= turns.first;
  return (
    <View
      title={title}
      className="flex flex-col overflow-hidden p-0 md:p-0"
      actions={<SessionActions session={session} />}
    >
      <SessionFacts session={session} />
      <Tabs sessionId={sessionId} shown={tab} />
      {tab === 'events' && (
        <EventHistory
          key={sessionId}
          sessionId={sessionId}
          count={session.revision + 1}
          event={event}
          isJson={json === true}
        />
      )}
      {tab !== 'events' && !hasTurns && (
        <EmptyState title="No turns yet">Continue in the chat to add the first one.</EmptyState>
      )}
      {tab === 'transcript' && hasTurns && <Transcript key={sessionId} {...turns} />}
      {tab === 'timeline' && hasTurns && <Timeline key={sessionId} {...turns} />}
    </View>
  );
}
