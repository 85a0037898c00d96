import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { FileJson, GitFork, Repeat2 } from 'lucide-react';
import { useEffect, useEffectEvent, useState } from 'react';
import { api, dataOf } from '../../api/client.ts';
import { newIdempotencyKey } from '../../api/idempotencyKey.ts';
import { streamTurn } from '../../chat/streamTurn.ts';
import { Round } from '../../chat/thread/TurnMessage.tsx';
import { isOpen, turnOfTranscript } from '../../chat/thread/turnState.ts';
import { Button, LinkButton } from '../../components/Button.tsx';
import { cn } from '../../components/classNames.ts';
import { Alert, Skeleton, StatusBadge, Time } from '../../components/view.tsx';
import { SessionLink } from '../SessionLink.tsx';
import { formatDuration, formatTokens } from './format.ts';
import { TurnRequestsDialog } from './TurnRequestsDialog.tsx';
import { waterfallQuery, type Turn } from './sessionQueries.ts';
import { Plain } from './texts.tsx';
import type { Span } from './waterfall.ts';

const ACTION = { variant: 'ghost', size: 'small' } as const;
const LINK = 'rounded px-1 py-0.5 text-primary tabular-nums hover:underline';
/** A bar is at least so wide that one can see it, in percent. */
const LEAST_WIDTH = 0.5;

interface TurnProps {
  session: { session_id: string; agent_id: string };
  turn: Turn;
}

/** The rounds of a turn; those of a running turn as they arrive. */
function useRounds({ session: { session_id, agent_id }, turn }: TurnProps) {
  const client = useQueryClient();
  const recorded = turnOfTranscript(session_id, turn);
  const [live, setLive] = useState(recorded);
  const isRunning = isOpen(recorded);
  const follow = useEffectEvent((signal: AbortSignal) =>
    streamTurn(recorded, {
      agentId: agent_id,
      signal,
      onChange: (next) => {
        setLive(next);
        if (!isOpen(next)) void client.invalidateQueries({ queryKey: ['session', session_id] });
      },
    }),
  );
  useEffect(() => {
    const stop = new AbortController();
    if (isRunning) void follow(stop.signal);
    return () => stop.abort();
  }, [isRunning]);
  return (isRunning ? live : recorded).rounds;
}

/** A turn as a conversation: what was asked, the tools that were called, and the answer. */
function Conversation({ session, turn }: TurnProps) {
  const { input, error, status } = turn;
  const rounds = useRounds({ session, turn });
  return (
    <>
      <div className="rounded-lg bg-muted px-3 py-2">
        <Plain text={input} />
      </div>
      {rounds.map((round, index) => (
        <Round key={index} round={round} />
      ))}
      {status === 'running' && rounds.length === 0 && (
        <p role="status" className="text-muted-foreground">
          Waiting for the model…
        </p>
      )}
      {error && (
        <div
          className={cn('rounded-md border p-3', status === 'failed' && 'border-destructive/60')}
        >
          <Plain text={error.message} />
          <p className="mt-1 text-xs text-muted-foreground">
            <code>{error.code}</code> {error.reason}
          </p>
        </div>
      )}
    </>
  );
}

/** A call as a bar, whose place and width are its share of the time of the turn. */
function SpanRow({ span, totalMs }: { span: Span; totalMs: number }) {
  const { kind, name, startMs, durationMs, tokens, isError } = span;
  const share = (ms: number): number => (totalMs === 0 ? 0 : (100 * ms) / totalMs);
  const width = Math.max(share(durationMs), LEAST_WIDTH);
  const tone = kind === 'model' ? 'bg-primary' : isError ? 'bg-destructive' : 'bg-success';
  return (
    <li className="grid grid-cols-[minmax(6rem,12rem)_minmax(0,1fr)] items-center gap-x-3 sm:grid-cols-[12rem_minmax(0,1fr)_5rem_10rem]">
      <span className="truncate">
        <span className="text-muted-foreground">{kind === 'model' ? 'Model' : 'Tool'}</span> {name}
      </span>
      <span aria-hidden className="relative h-3 rounded-sm bg-muted">
        <span
          className={cn('absolute inset-y-0 rounded-sm', tone)}
          style={{ left: `${Math.min(share(startMs), 100 - width)}%`, width: `${width}%` }}
        />
      </span>
      <span className="text-muted-foreground tabular-nums sm:text-right">
        <span className="sr-only">
          from {formatDuration(startMs)}, {isError && 'failed, '}
        </span>
        {formatDuration(durationMs)}
      </span>
      <span className="truncate text-muted-foreground tabular-nums">
        {tokens && formatTokens(tokens)}
      </span>
    </li>
  );
}

/** The waterfall of a turn: its calls over time. */
function Spans({ session: { session_id }, turn }: TurnProps) {
  const { data: waterfall } = useQuery(waterfallQuery(session_id, turn));
  if (waterfall === undefined) return <Skeleton className="h-8" />;
  return (
    <>
      {waterfall?.spans.length ? (
        <ul className="grid gap-1 text-xs">
          {waterfall.spans.map((span, index) => (
            <SpanRow key={index} span={span} totalMs={waterfall.durationMs} />
          ))}
        </ul>
      ) : (
        <p className="text-xs text-muted-foreground">No call has been recorded for this turn.</p>
      )}
      {waterfall && (
        <SessionLink
          id={turn.origin_session_id ?? session_id}
          search={{ tab: 'events', event: waterfall.revisions[0] }}
          className={cn(LINK, '-ml-1 w-fit text-xs')}
        >
          Events {waterfall.revisions.join('–')}
        </SessionLink>
      )}
    </>
  );
}

/** The actions on a turn. */
function TurnActions({ session: { session_id }, turn: { turn, status } }: TurnProps) {
  const [showsRequests, setShowsRequests] = useState(false);
  const [key] = useState(newIdempotencyKey);
  const navigate = useNavigate();
  const client = useQueryClient();
  const fork = useMutation({
    mutationFn: () => {
      const header = { 'Idempotency-Key': key };
      const params = { path: { sessionId: session_id }, header };
      return dataOf(api.POST('/v1/sessions/{sessionId}/fork', { params, body: { at_turn: turn } }));
    },
    onSuccess: ({ session_id: sessionId }) => {
      void client.invalidateQueries({ queryKey: ['sessions'] });
      return navigate({ to: '/sessions/$sessionId', params: { sessionId } });
    },
  });
  return (
    <footer className="-ml-3 flex flex-wrap items-center">
      {status !== 'running' && (
        <>
          <Button {...ACTION} disabled={fork.isPending} onClick={() => fork.mutate()}>
            <GitFork aria-hidden /> Fork here
          </Button>
          <LinkButton {...ACTION} to="/replays/new" search={{ session: session_id, turn }}>
            <Repeat2 aria-hidden /> Replay here
          </LinkButton>
        </>
      )}
      <Button {...ACTION} onClick={() => setShowsRequests(true)}>
        <FileJson aria-hidden /> Requests
      </Button>
      {fork.error && <Alert title={fork.error.message} />}
      {showsRequests && (
        <TurnRequestsDialog
          sessionId={session_id}
          turn={turn}
          onClose={() => setShowsRequests(false)}
        />
      )}
    </footer>
  );
}

interface TurnCardProps extends TurnProps {
  tab: 'transcript' | 'timeline';
  isTarget: boolean;
}

/** A turn in the transcript or in the timeline. */
export function TurnCard({ session, tab, turn, isTarget }: TurnCardProps) {
  const { session_id } = session;
  const { started_at, ended_at, status, tokens, origin_session_id, finish_reason: reason } = turn;
  const figures = [
    turn.model,
    tokens && formatTokens(tokens),
    ended_at && formatDuration(Date.parse(ended_at) - Date.parse(started_at)),
    reason !== 'stop' && reason,
  ];
  return (
    <article
      aria-label={`Turn ${turn.turn}`}
      aria-current={isTarget || undefined}
      className={cn(
        'border-b border-l-2 border-l-transparent p-4 md:px-6',
        isTarget && 'border-l-primary bg-accent/40',
      )}
    >
      <div className={cn('mx-auto grid gap-3', tab === 'transcript' && 'max-w-4xl')}>
        <header className="flex flex-wrap items-center gap-x-3 gap-y-1 text-xs text-muted-foreground">
          <SessionLink
            id={session_id}
            search={{ ...(tab === 'timeline' && { tab }), turn: turn.turn }}
            isInPlace
            aria-label={`Link to turn ${turn.turn}`}
            className={cn(LINK, '-ml-1 font-medium')}
          >
            #{turn.turn}
          </SessionLink>
          <Time value={started_at} />
          {status !== 'completed' && <StatusBadge status={status} />}
          {origin_session_id !== undefined && (
            <SessionLink id={origin_session_id} search={{ turn: turn.turn }} className={LINK}>
              Shared
            </SessionLink>
          )}
          <span className="min-w-0 truncate tabular-nums">
            {figures.filter(Boolean).join(' · ')}
          </span>
        </header>
        {tab === 'timeline' ? (
          <>
            <p className="truncate">{turn.input.slice(0, 200)}</p>
            <Spans session={session} turn={turn} />
          </>
        ) : (
          <>
            <Conversation session={session} turn={turn} />
            <TurnActions session={session} turn={turn} />
          </>
        )}
      </div>
    </article>
  );
}
