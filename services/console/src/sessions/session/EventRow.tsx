import { cn } from '../../components/classNames.ts';
import { CopyButton } from '../../components/Button.tsx';
import { Time } from '../../components/view.tsx';
import { SessionLink } from '../SessionLink.tsx';
import type { SessionEvent } from './sessionQueries.ts';
import { Code } from './texts.tsx';
import { textOf } from './waterfall.ts';

const SHOWN_CHARACTERS = 160;

/** The members of events that tell what happened, in the order in which they are shown. */
const TELLING = 'input tool arguments output code message reason cause title'.split(' ');

/** A summary of an event, in one line. */
const summaryOf = ({ data }: SessionEvent): string =>
  TELLING.flatMap((name) => {
    const value = (data as Readonly<Record<string, unknown>>)[name] as
      Parameters<typeof textOf>[0] | null;
    return value ? [textOf(value) ?? 'erased text'] : [];
  })
    .join(' ')
    .slice(0, SHOWN_CHARACTERS);

interface EventRowProps {
  sessionId: string;
  event: SessionEvent;
  isTarget: boolean;
}

/** An event in one line, or as JSON. Its revision is a link, which opens and closes the JSON. */
export function EventRow({ sessionId, event, isTarget }: EventRowProps) {
  const { revision, type, metadata } = event;
  const json = isTarget && JSON.stringify(event, null, 2);
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
        <SessionLink
          id={sessionId}
          search={{ tab: 'events', ...(!isTarget && { event: revision }) }}
          isInPlace
          aria-expanded={isTarget}
          aria-label={`Event ${revision}`}
          className="w-10 shrink-0 py-1 text-right font-medium text-primary tabular-nums after:absolute after:inset-x-0 after:top-0 after:h-10"
        >
          {revision}
        </SessionLink>
        <code className="w-28 shrink-0 truncate md:w-44">
          {type.replace(/^session\./, '').replace(/\.v\d+$/, '')}
        </code>
        <span className="min-w-0 flex-1 truncate text-sm">{summaryOf(event)}</span>
        <Time
          value={metadata.recorded_at}
          className="relative z-10 hidden shrink-0 text-muted-foreground tabular-nums md:inline"
        />
      </div>
      {json && (
        <div className="grid justify-items-end pb-3 *:max-w-full [&_pre]:w-full">
          <CopyButton text={json} label="Copy JSON" />
          <Code label={`Event ${revision} as JSON`} text={json} />
        </div>
      )}
    </article>
  );
}
