import { memo, useLayoutEffect, useRef } from 'react';
import { Button, CopyButton } from '../../components/Button.tsx';
import { cn } from '../../components/classNames.ts';
import { marked, sanitize } from '../../markdown/sanitize.ts';
import { LongText, Plain, ToolCallDetails } from '../../sessions/session/texts.tsx';
import { isOpen, type ChatRound, type ChatTurn } from './turnState.ts';

/** A text of a person, an agent or a tool, as Markdown. */
const Markdown = memo(({ text }: { text: string }) => {
  const ref = useRef<HTMLDivElement>(null);
  useLayoutEffect(
    () => ref.current!.replaceChildren(sanitize(marked.parse(text, { async: false }))),
    [text],
  );
  return <div ref={ref} className="markdown wrap-anywhere *:not-first:mt-[0.5em]" />;
});

/** One model call: its reasoning, its text and its tool calls. */
export const Round = memo(({ round: { reasoning, text, calls } }: { round: ChatRound }) => (
  <>
    {reasoning && (
      <details className="text-muted-foreground">
        <summary className="w-fit text-xs">Reasoning</summary>
        <Plain text={reasoning} className="mt-1 border-l-2 pl-3" />
      </details>
    )}
    {text && <LongText text={text}>{(shown) => <Markdown text={shown} />}</LongText>}
    {calls.map((call) => (
      <ToolCallDetails key={call.call_id} call={call} />
    ))}
  </>
));

const ADVICE: Readonly<Record<string, string>> = {
  same_key: 'Try again. The message is not sent twice.',
  new_key: 'The failure is recorded. Try again with a new turn.',
  never: 'The same message would fail again. Change it, or change the agent.',
};

export interface TurnActions {
  onRetry: (turn: ChatTurn) => void;
  onEdit: (input: string) => void;
}

interface TurnMessageProps extends TurnActions {
  turn: ChatTurn;
  isLast: boolean;
}

/** Why a turn failed or was stopped, and what to try. */
function Failure({ turn, isLast, onRetry, onEdit }: TurnMessageProps) {
  const { code, message, retry } = turn.failure!;
  const wasStopped = turn.status === 'interrupted';
  return (
    <div
      role="alert"
      className={cn('grid gap-1 rounded-md border p-3', !wasStopped && 'border-destructive/60')}
    >
      <p className="wrap-anywhere">{message}</p>
      {!wasStopped && (
        <p className="text-muted-foreground">
          {ADVICE[retry]} <code className="text-xs">{code}</code>
        </p>
      )}
      {isLast && (
        <div className="mt-1 flex flex-wrap gap-2">
          {retry !== 'never' && (
            <Button size="small" onClick={() => onRetry(turn)}>
              Try again
            </Button>
          )}
          <Button size="small" onClick={() => onEdit(turn.input)}>
            Edit the message
          </Button>
        </div>
      )}
    </div>
  );
}

/** A turn: the message, and everything that the agent has answered so far. */
export const TurnMessage = memo((props: TurnMessageProps) => {
  const { number, input, rounds, status, failure, model, tokens } = props.turn;
  const answer = rounds.at(-1)?.text;
  return (
    <article
      aria-label={number === undefined ? 'New turn' : `Turn ${number}`}
      aria-busy={isOpen(props.turn)}
      className="grid gap-3"
    >
      <div className="ml-auto max-w-[85%] rounded-lg bg-accent px-3 py-2 text-accent-foreground">
        <Plain text={input} />
      </div>
      <div className="grid min-w-0 gap-2">
        {rounds.map((round, index) => (
          <Round key={index} round={round} />
        ))}
        {failure && <Failure {...props} />}
        {/* The line has its place from the start, so that nothing moves at the end. */}
        <p
          role="status"
          className="flex h-8 items-center justify-between gap-2 text-xs tabular-nums text-muted-foreground"
        >
          {isOpen(props.turn) && (status === 'sending' ? 'Sending…' : 'Answering…')}
          {tokens && `${model} · ${tokens.prompt} + ${tokens.completion} tokens`}
          {status === 'completed' && answer && <CopyButton text={answer} label="Copy" />}
        </p>
      </div>
    </article>
  );
});
