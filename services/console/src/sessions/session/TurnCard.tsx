import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { FileJson, GitFork, Repeat2 } from 'lucide-react';
import { useState } from 'react';
import { api, dataOf } from '../../api/client.ts';
import { newIdempotencyKey } from '../../api/idempotencyKey.ts';
import { Button } from '../../components/Button.tsx';
import { cn } from '../../components/classNames.ts';
import { Badge } from '../../components/layout.tsx';
import { Markdown } from '../../components/Markdown.tsx';
import { Time } from '../../components/Time.tsx';
import { formatDuration, formatTokens } from './format.ts';
import { LiveOutput } from './LiveOutput.tsx';
import { TurnRequestsDialog } from './TurnRequestsDialog.tsx';
import type { Turn } from './sessionQueries.ts';
import { LongText, Plain, ToolCallDetails } from './texts.tsx';

const TONES = { failed: 'destructive', interrupted: 'warning', running: 'success' } as const;

function Failure({ error }: { error: NonNullable<Turn['error']> }) {
  const isCancelled = error.reason === 'cancelled';
  return (
    <div
      className={cn(
        'rounded-md border px-3 py-2',
        isCancelled ? 'border-warning/50 bg-warning/10' : 'border-destructive/50 bg-destructive/10',
      )}
    >
      <p className="[overflow-wrap:anywhere] whitespace-pre-wrap">{error.message}</p>
      <p className="mt-1 text-xs text-muted-foreground">
        <code>{error.code}</code>
        {error.reason !== undefined && ` · ${error.reason}`}
      </p>
    </div>
  );
}

/** The figures of a turn: model, tokens, latency. */
function TurnFigures({ turn }: { turn: Turn }) {
  const parts = [
    turn.model,
    turn.tokens && formatTokens(turn.tokens),
    turn.ended_at && formatDuration(Date.parse(turn.ended_at) - Date.parse(turn.started_at)),
    turn.finish_reason !== null && !['', 'stop'].includes(turn.finish_reason) && turn.finish_reason,
  ].filter(Boolean);
  return <span className="min-w-0 truncate tabular-nums">{parts.join(' · ')}</span>;
}

/** The link of a turn. */
export const TurnLink = ({
  sessionId,
  turn,
  tab,
}: {
  sessionId: string;
  turn: number;
  tab?: 'timeline';
}) => (
  <Link
    to="/sessions/$sessionId"
    params={{ sessionId }}
    search={{ ...(tab && { tab }), turn }}
    replace
    preload={false}
    resetScroll={false}
    aria-label={`Link to turn ${turn}`}
    className="-ml-1 rounded px-1 py-0.5 font-medium text-primary tabular-nums hover:underline"
  >
    #{turn}
  </Link>
);

/** Forks a session after a turn, and shows the fork. */
function useFork(sessionId: string) {
  const navigate = useNavigate();
  const client = useQueryClient();
  const [key] = useState(newIdempotencyKey);
  return useMutation({
    mutationFn: (turn: number) =>
      dataOf(
        api.POST('/v1/sessions/{sessionId}/fork', {
          params: {
            path: { sessionId },
            header: { 'Idempotency-Key': `${key}-${turn}` },
          },
          body: { at_turn: turn },
        }),
      ),
    onSuccess: ({ session_id }) => {
      void client.invalidateQueries({ queryKey: ['sessions'] });
      return navigate({ to: '/sessions/$sessionId', params: { sessionId: session_id } });
    },
  });
}

interface TurnCardProps {
  sessionId: string;
  turn: Turn;
  isTarget: boolean;
}

/** A turn: what was asked, the tools that were called, and the answer or why there is none. */
export function TurnCard({ sessionId, turn, isTarget }: TurnCardProps) {
  const [showsRequests, setShowsRequests] = useState(false);
  const fork = useFork(sessionId);
  const { status, output, reasoning } = turn;
  const hasEnded = status !== 'running';
  return (
    <article
      aria-label={`Turn ${turn.turn}`}
      aria-current={isTarget || undefined}
      className={cn(
        'border-b border-l-2 border-l-transparent px-4 py-4 md:px-6',
        isTarget && 'border-l-primary bg-accent/40',
      )}
    >
      <div className="mx-auto grid max-w-4xl gap-3">
        <header className="flex flex-wrap items-center gap-x-3 gap-y-1 text-xs text-muted-foreground">
          <TurnLink sessionId={sessionId} turn={turn.turn} />
          <Time value={turn.started_at} />
          {status !== 'completed' && (
            <Badge tone={TONES[status]} className="capitalize">
              {status}
            </Badge>
          )}
          {turn.origin_session_id !== undefined && (
            <Link
              to="/sessions/$sessionId"
              params={{ sessionId: turn.origin_session_id }}
              search={{ turn: turn.turn }}
              className="text-primary hover:underline"
            >
              Shared
            </Link>
          )}
          <TurnFigures turn={turn} />
        </header>
        <div className="rounded-lg bg-muted px-3 py-2">
          <p className="sr-only">Input</p>
          <Plain text={turn.input} />
        </div>
        {turn.tool_calls.length > 0 && hasEnded && (
          <div className="grid gap-1.5">
            {turn.tool_calls.map((call) => (
              <ToolCallDetails key={`${call.round} ${call.call_id}`} call={call} />
            ))}
          </div>
        )}
        {reasoning && (
          <details>
            <summary className="text-xs text-muted-foreground">Reasoning</summary>
            <Plain text={reasoning} className="mt-1 text-muted-foreground" />
          </details>
        )}
        {output !== null && (
          <div>
            <p className="sr-only">Answer</p>
            <LongText text={output}>{(shown) => <Markdown text={shown} />}</LongText>
          </div>
        )}
        {turn.error && <Failure error={turn.error} />}
        {!hasEnded && <LiveOutput sessionId={sessionId} turn={turn.turn} />}
        <footer className="-ml-3 flex flex-wrap">
          {hasEnded && (
            <>
              <Button
                variant="ghost"
                size="small"
                disabled={fork.isPending}
                onClick={() => fork.mutate(turn.turn)}
              >
                <GitFork aria-hidden /> Fork here
              </Button>
              <Button asChild variant="ghost" size="small">
                <Link to="/replays/new" search={{ session: sessionId, turn: turn.turn }}>
                  <Repeat2 aria-hidden /> Replay here
                </Link>
              </Button>
            </>
          )}
          <Button variant="ghost" size="small" onClick={() => setShowsRequests(true)}>
            <FileJson aria-hidden /> Requests
          </Button>
        </footer>
        {fork.error && (
          <p role="alert" className="text-destructive">
            {fork.error.message}
          </p>
        )}
        {showsRequests && (
          <TurnRequestsDialog
            sessionId={sessionId}
            turn={turn.turn}
            onClose={() => setShowsRequests(false)}
          />
        )}
      </div>
    </article>
  );
}
