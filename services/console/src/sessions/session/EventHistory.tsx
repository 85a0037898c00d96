import { Link } from '@tanstack/react-router';
import { toCurl } from '../../api/requestLog.ts';
import { cn } from '../../components/classNames.ts';
import { CopyButton } from '../../components/CopyButton.tsx';
import { Time } from '../../components/Time.tsx';
import { formatDuration } from './format.ts';
import { NumberedView } from './NumberedView.tsx';
import { readEventsBetween, type SessionEvent } from './sessionQueries.ts';
import { textOf } from './waterfall.ts';

const PAGE_EVENTS = 100;
const ESTIMATED_PX = { compact: 41, json: 420 } as const;

const ERASED = 'erased text';
const SHOWN_CHARACTERS = 160;

/** What happened in an event, in one line. */
function summaryOf({ type, data }: SessionEvent): string {
  switch (type) {
    case 'session.started.v1':
      return data.forked_from
        ? `Fork of ${data.forked_from.session_id} at turn ${data.forked_from.turn}`
        : data.agent_id;
    case 'session.turn_started.v1':
      return textOf(data.input) ?? ERASED;
    case 'session.tool_called.v1':
      return `${textOf(data.tool) ?? ERASED}(${textOf(data.arguments) ?? ERASED})`;
    case 'session.turn_completed.v1':
      return textOf(data.output) ?? ERASED;
    case 'session.turn_failed.v1':
      return `${data.code}: ${textOf(data.message) ?? ERASED}`;
    case 'session.turn_interrupted.v1':
      return data.cause ?? data.reason;
    case 'session.compacted.v1':
      return `Summary of turns ${data.from_turn} to ${data.up_to_turn}`;
    case 'session.described.v1':
      return [
        data.title === undefined ? '' : (textOf(data.title) ?? ERASED),
        ...data.labels.map(({ name, value }) => `${textOf(name) ?? ERASED}:${textOf(value) ?? ''}`),
      ].join(' ');
    case 'session.erased.v1':
      return 'Texts were erased';
    default:
      // Later releases have further types.
      return '';
  }
}

interface EventRowProps {
  sessionId: string;
  event: SessionEvent;
  isTarget: boolean;
  isJson: boolean;
}

/** An event in one line, or as JSON. Its revision is a link, which opens and closes the JSON. */
function EventRow({ sessionId, event, isTarget, isJson }: EventRowProps) {
  const { revision, type, data, metadata } = event;
  const isOpen = isTarget || isJson;
  const json = isOpen ? JSON.stringify(event, null, 2) : '';
  const query = revision > 0 ? `after=${revision - 1}&limit=1` : 'limit=1';
  const url = `${location.origin}/v1/sessions/${sessionId}/events?${query}`;
  return (
    <article
      aria-label={`Event ${revision}`}
      aria-current={isTarget || undefined}
      className={cn(
        'relative border-b border-l-2 border-l-transparent px-4 text-xs md:px-6',
        isTarget && 'border-l-primary bg-accent/40',
      )}
    >
      <div className="flex min-h-10 items-center gap-3">
        <Link
          to="/sessions/$sessionId"
          params={{ sessionId }}
          search={{
            tab: 'events',
            ...(isJson && { json: true as const }),
            ...(!isTarget && { event: revision }),
          }}
          replace
          preload={false}
          resetScroll={false}
          aria-expanded={isOpen}
          aria-label={`Event ${revision}`}
          className="w-10 shrink-0 py-1 text-right font-medium text-primary tabular-nums after:absolute after:inset-x-0 after:top-0 after:h-10"
        >
          {revision}
        </Link>
        <code className="w-28 shrink-0 truncate md:w-44">
          {type.replace(/^session\./, '').replace(/\.v\d+$/, '')}
        </code>
        <span className="min-w-0 flex-1 truncate text-sm">
          {summaryOf(event).slice(0, SHOWN_CHARACTERS)}
        </span>
        {'duration_ms' in data && (
          <span className="hidden text-muted-foreground tabular-nums sm:inline">
            {formatDuration(data.duration_ms)}
          </span>
        )}
        <Time
          value={metadata.recorded_at}
          className="relative z-10 hidden shrink-0 text-muted-foreground tabular-nums md:inline"
        />
      </div>
      {isOpen && (
        <div className="pb-3">
          <div className="flex justify-end">
            <CopyButton text={json} label="Copy JSON" />
            <CopyButton
              text={toCurl({ method: 'GET', url, body: undefined, headers: {} })}
              label="Copy as curl"
            />
          </div>
          <pre
            tabIndex={0}
            aria-label={`Event ${revision} as JSON`}
            className="max-h-[28rem] overflow-auto rounded-md bg-muted p-3 break-words whitespace-pre-wrap [overflow-wrap:anywhere]"
          >
            {json}
          </pre>
        </div>
      )}
    </article>
  );
}

interface EventHistoryProps {
  sessionId: string;
  /** The number of events. */
  count: number;
  event: number | undefined;
  isJson: boolean;
}

/** The events of a session as they were recorded. */
export function EventHistory({ sessionId, count, event, isJson }: EventHistoryProps) {
  const list = {
    queryKey: ['session', sessionId, 'entries', 'events'],
    count,
    pageSize: PAGE_EVENTS,
    read: (start: number, end: number, signal: AbortSignal) =>
      readEventsBetween(sessionId, { from: start, to: end - 1 }, signal),
  };
  return (
    <>
      <div className="flex items-center justify-between gap-3 border-b px-4 py-1.5 text-xs text-muted-foreground md:px-6">
        <span>Recorded in this order; each hash covers the event before it.</span>
        <Link
          to="/sessions/$sessionId"
          params={{ sessionId }}
          search={{
            tab: 'events',
            ...(event !== undefined && { event }),
            ...(!isJson && { json: true as const }),
          }}
          replace
          className="shrink-0 rounded px-1 py-1 text-primary hover:underline"
        >
          {isJson ? 'Show as lines' : 'Show as JSON'}
        </Link>
      </div>
      <NumberedView
        key={String(isJson)}
        label="Events"
        list={list}
        estimate={ESTIMATED_PX[isJson ? 'json' : 'compact']}
        target={event}
      >
        {(each) => (
          <EventRow
            sessionId={sessionId}
            event={each}
            isTarget={each.revision === event}
            isJson={isJson}
          />
        )}
      </NumberedView>
    </>
  );
}
