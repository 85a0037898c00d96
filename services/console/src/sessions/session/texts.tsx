import { Wrench } from 'lucide-react';
import { useState, type ReactNode } from 'react';
import type { Schema } from '../../api/client.ts';
import { Button } from '../../components/Button.tsx';
import { cn } from '../../components/classNames.ts';
import { Badge } from '../../components/layout.tsx';
import { formatDuration, formatNumber } from './format.ts';

const SHOWN_CHARACTERS = 8_000;

/** A text of which the first part is shown until the reader wants the rest. */
export function LongText({
  text,
  children,
}: {
  text: string;
  children: (shown: string) => ReactNode;
}) {
  const [isWhole, setWhole] = useState(false);
  const isLong = text.length > SHOWN_CHARACTERS && !isWhole;
  return (
    <>
      {children(isLong ? text.slice(0, SHOWN_CHARACTERS) : text)}
      {isLong && (
        <Button variant="link" size="small" className="px-0" onClick={() => setWhole(true)}>
          Show all {formatNumber(text.length)} characters
        </Button>
      )}
    </>
  );
}

/** A text as it was written. */
export const Plain = ({ text, className }: { text: string; className?: string }) => (
  <LongText text={text}>
    {(shown) => (
      <p className={cn('break-words whitespace-pre-wrap [overflow-wrap:anywhere]', className)}>
        {shown}
      </p>
    )}
  </LongText>
);

const Code = ({ label, text }: { label: string; text: string }) => (
  <div>
    <p className="text-xs text-muted-foreground">{label}</p>
    <LongText text={text}>
      {(shown) => (
        <pre
          tabIndex={0}
          aria-label={label}
          className="mt-1 max-h-80 overflow-auto rounded-md bg-muted p-2 text-xs break-words whitespace-pre-wrap [overflow-wrap:anywhere]"
        >
          {shown}
        </pre>
      )}
    </LongText>
  </div>
);

/** A tool call; its arguments and result open on demand. */
export const ToolCallDetails = ({ call }: { call: Schema<'ToolCall'> }) => (
  <details className="rounded-md border">
    <summary className="flex min-h-8 items-center gap-2 px-2.5 py-1.5">
      <Wrench className="size-3.5 shrink-0 text-muted-foreground" aria-hidden />
      <code className="min-w-0 truncate">{call.tool}</code>
      {call.is_error && <Badge tone="destructive">Error</Badge>}
      <span className="ml-auto text-xs text-muted-foreground tabular-nums">
        {formatDuration(call.duration_ms)}
      </span>
    </summary>
    <div className="grid gap-2 border-t p-2.5">
      {call.reasoning !== undefined && <Code label="Reasoning" text={call.reasoning} />}
      <Code label="Arguments" text={call.arguments} />
      <Code label="Result" text={call.result} />
    </div>
  </details>
);
