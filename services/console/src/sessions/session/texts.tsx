import { Wrench } from 'lucide-react';
import { useState, type ReactNode } from 'react';
import type { ChatToolCall } from '../../chat/thread/turnState.ts';
import { Button } from '../../components/Button.tsx';
import { cn } from '../../components/classNames.ts';
import { Badge } from '../../components/view.tsx';
import { formatDuration, formatNumber } from './format.ts';

const SHOWN_CHARACTERS = 8_000;

interface LongTextProps {
  text: string;
  children: (shown: string) => ReactNode;
}

/** A text of which the first part is shown until the reader wants the rest. */
export function LongText({ text, children }: LongTextProps) {
  const [isWhole, setWhole] = useState(text.length <= SHOWN_CHARACTERS);
  if (isWhole) return children(text);
  return (
    <>
      {children(text.slice(0, SHOWN_CHARACTERS))}
      <Button variant="link" size="small" className="px-0" onClick={() => setWhole(true)}>
        Show all {formatNumber(text.length)} characters
      </Button>
    </>
  );
}

/** A text as it was written. */
export const Plain = ({ text, className }: { text: string; className?: string }) => (
  <LongText text={text}>
    {(shown) => <p className={cn('wrap-anywhere whitespace-pre-wrap', className)}>{shown}</p>}
  </LongText>
);

/** Code or JSON, which scrolls within its block. */
export const Code = ({ label, text }: { label: string; text: string }) => (
  <LongText text={text}>
    {(shown) => (
      <pre
        tabIndex={0}
        aria-label={label}
        className="max-h-96 overflow-auto rounded-md bg-muted p-2.5 text-xs wrap-anywhere whitespace-pre-wrap"
      >
        {shown}
      </pre>
    )}
  </LongText>
);

/** A tool call; its arguments and result open on demand. */
export const ToolCallDetails = ({ call }: { call: ChatToolCall }) => (
  <details className="rounded-md border">
    <summary className="flex min-h-8 items-center gap-2 px-2.5 py-1.5">
      <Wrench className="size-3.5 shrink-0 text-muted-foreground" aria-hidden />
      <code className="min-w-0 truncate">{call.tool}</code>
      {call.is_error && <Badge tone="destructive">Error</Badge>}
      <span className="ml-auto text-xs text-muted-foreground tabular-nums">
        {formatDuration(call.duration_ms)}
      </span>
    </summary>
    <div className="grid gap-1 border-t p-2.5 text-xs text-muted-foreground">
      Arguments
      <Code label="Arguments" text={call.arguments} />
      Result
      <Code label="Result" text={call.result} />
    </div>
  </details>
);
