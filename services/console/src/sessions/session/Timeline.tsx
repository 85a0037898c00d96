import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { api, dataOf, type Schema } from '../../api/client.ts';
import { cn } from '../../components/classNames.ts';
import { Badge } from '../../components/layout.tsx';
import { formatTokenCost, formatDuration, formatTokens } from './format.ts';
import { NumberedView } from './NumberedView.tsx';
import { readTimeline, type Turn } from './sessionQueries.ts';
import { TurnLink } from './TurnCard.tsx';
import type { TurnsProps } from './Transcript.tsx';
import type { Span, Waterfall } from './waterfall.ts';

const PAGE_TURNS = 20;
const ESTIMATED_PX = 110;
/** A bar is at least so wide that one can see it, in percent. */
const LEAST_WIDTH = 0.5;

/** A call as a bar, whose place and width are its share of the time of the turn. */
function SpanRow({
  span,
  totalMs,
  cost,
}: {
  span: Span;
  totalMs: number;
  cost: string | undefined;
}) {
  const { kind, name, startMs, durationMs, tokens, isError } = span;
  const share = (ms: number): number => (totalMs === 0 ? 0 : (100 * ms) / totalMs);
  const width = Math.max(share(durationMs), LEAST_WIDTH);
  return (
    <li className="grid grid-cols-[minmax(6rem,12rem)_minmax(0,1fr)] items-center gap-x-3 sm:grid-cols-[12rem_minmax(0,1fr)_5rem_14rem]">
      <span className="truncate">
        <span className="text-muted-foreground">{kind === 'model' ? 'Model' : 'Tool'}</span> {name}
      </span>
      <span aria-hidden className="relative h-3 rounded-sm bg-muted">
        <span
          className={cn(
            'absolute inset-y-0 rounded-sm',
            kind === 'model' ? 'bg-primary' : isError ? 'bg-destructive' : 'bg-success',
          )}
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
        {cost !== undefined && ` · ${cost}`}
      </span>
    </li>
  );
}

interface TimelineTurnProps {
  sessionId: string;
  turn: Turn;
  waterfall: Waterfall | undefined;
  isTarget: boolean;
  priceOf: (model: string) => Schema<'Price'> | undefined;
}

function TimelineTurn({ sessionId, turn, waterfall, isTarget, priceOf }: TimelineTurnProps) {
  const recordedBy = turn.origin_session_id ?? sessionId;
  const price = waterfall && priceOf(waterfall.model);
  const total = waterfall?.tokens && formatTokenCost(waterfall.tokens, price);
  return (
    <article
      aria-label={`Turn ${turn.turn}`}
      aria-current={isTarget || undefined}
      className={cn(
        'grid gap-2 border-b border-l-2 border-l-transparent px-4 py-3 text-xs md:px-6',
        isTarget && 'border-l-primary bg-accent/40',
      )}
    >
      <header className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <TurnLink sessionId={sessionId} turn={turn.turn} tab="timeline" />
        <span className="min-w-0 flex-1 basis-40 truncate text-sm">{turn.input.slice(0, 200)}</span>
        {turn.status !== 'completed' && <Badge className="capitalize">{turn.status}</Badge>}
        <span className="text-muted-foreground tabular-nums">
          {[
            waterfall && formatDuration(waterfall.durationMs),
            turn.tokens && formatTokens(turn.tokens),
            total,
          ]
            .filter(Boolean)
            .join(' · ')}
        </span>
        {waterfall && (
          <Link
            to="/sessions/$sessionId"
            params={{ sessionId: recordedBy }}
            search={{ tab: 'events', event: waterfall.revisions[0] }}
            className="rounded px-1 py-0.5 text-primary hover:underline"
          >
            Events {waterfall.revisions[0]}–{waterfall.revisions[1]}
          </Link>
        )}
      </header>
      {waterfall && waterfall.spans.length > 0 ? (
        <ul className="grid gap-1">
          {waterfall.spans.map((span, index) => (
            <SpanRow
              key={index}
              span={span}
              totalMs={waterfall.durationMs}
              cost={span.tokens && formatTokenCost(span.tokens, price)}
            />
          ))}
        </ul>
      ) : (
        <p className="text-muted-foreground">No call has been recorded for this turn.</p>
      )}
    </article>
  );
}

/** What each turn did with its time: model calls, tool calls and tokens. */
export function Timeline({ session, first, target }: TurnsProps) {
  const { session_id, turn_count } = session;
  const { data: models } = useQuery({
    queryKey: ['models'],
    queryFn: () => dataOf(api.GET('/v1/models')),
    staleTime: 60_000,
  });
  const list = {
    queryKey: ['session', session_id, 'entries', 'timeline'],
    count: turn_count - first + 1,
    pageSize: PAGE_TURNS,
    read: (start: number, end: number, signal: AbortSignal) =>
      readTimeline(session_id, { from: first + start, to: first + end - 1 }, signal),
  };
  return (
    <NumberedView
      label="Timeline"
      list={list}
      estimate={ESTIMATED_PX}
      target={target === undefined ? undefined : Math.max(target - first, 0)}
    >
      {({ turn, waterfall }) => (
        <TimelineTurn
          sessionId={session_id}
          turn={turn}
          waterfall={waterfall}
          isTarget={turn.turn === target}
          priceOf={(model) => models?.find(({ id }) => id === model)?.price}
        />
      )}
    </NumberedView>
  );
}
