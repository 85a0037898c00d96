import { CircleStop, CircleX, LoaderCircle, Wrench } from 'lucide-react';
import { memo, type ReactNode } from 'react';
import { Button } from '../../components/Button.tsx';
import { CopyButton } from '../../components/CopyButton.tsx';
import { Markdown } from '../../components/Markdown.tsx';
import { isOpen, type ThreadRound, type ThreadToolCall, type ThreadTurn } from './turnState.ts';

const BOX = 'rounded-md border bg-card';
const PRE =
  'max-h-64 overflow-auto rounded bg-muted p-2 font-mono text-xs whitespace-pre-wrap wrap-anywhere';

/** A text that is JSON, indented; any other as it is. */
function indent(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2);
  } catch {
    return text;
  }
}

const Pre = ({ label, text }: { label: string; text: string }) => (
  <div className="grid gap-1">
    <span className="text-xs text-muted-foreground">{label}</span>
    <pre className={PRE} tabIndex={0} role="group" aria-label={label}>
      {indent(text) || ' '}
    </pre>
  </div>
);

/** A tool call: its name always, its arguments and its result on demand. */
const ToolCallCard = ({ call }: { call: ThreadToolCall }) => (
  <details className={BOX}>
    <summary className="flex items-center gap-2 px-3 py-2 text-sm">
      {call.is_error ? (
        <CircleX className="size-4 shrink-0 text-destructive" aria-hidden />
      ) : (
        <Wrench className="size-4 shrink-0 text-muted-foreground" aria-hidden />
      )}
      <code className="min-w-0 truncate">{call.tool}</code>
      <span className="min-w-0 flex-1 truncate text-xs text-muted-foreground">
        {call.is_error ? 'failed' : call.result}
      </span>
      <span className="text-xs whitespace-nowrap tabular-nums text-muted-foreground">
        {call.duration_ms} ms
      </span>
    </summary>
    <div className="grid gap-2 border-t p-3">
      <Pre label="Arguments" text={call.arguments} />
      <Pre label={call.is_error ? 'Error' : 'Result'} text={call.result} />
    </div>
  </details>
);

const Reasoning = ({ text }: { text: string }) => (
  <details className="text-muted-foreground">
    <summary className="w-fit text-xs">Reasoning</summary>
    <div className="mt-1 border-l-2 pl-3 whitespace-pre-wrap wrap-anywhere">{text}</div>
  </details>
);

const isJson = (text: string): boolean => /^\s*[[{]/.test(text) && indent(text) !== text;

/** One model call: its reasoning, its text and its tool calls. */
const Round = memo(({ round }: { round: ThreadRound }) => (
  <div className="grid gap-2">
    {round.reasoning && <Reasoning text={round.reasoning} />}
    {round.text &&
      (isJson(round.text) ? (
        <pre className={PRE} tabIndex={0} role="group" aria-label="JSON">
          {indent(round.text)}
        </pre>
      ) : (
        <Markdown text={round.text} />
      ))}
    {round.calls.map((call) => (
      <ToolCallCard key={call.call_id} call={call} />
    ))}
  </div>
));

const ADVICE: Readonly<Record<string, string>> = {
  same_key: 'Try again. The message is not sent twice.',
  new_key: 'The failure is recorded. Try again with a new turn.',
  never: 'The same message would fail again. Change it, or change the agent.',
};

export interface TurnActions {
  onRetry: (turn: ThreadTurn) => void;
  onEdit: (input: string) => void;
}

/** Why a turn failed or was stopped, and what to try. */
function Failure({
  turn,
  isLast,
  ...actions
}: { turn: ThreadTurn; isLast: boolean } & TurnActions) {
  const { failure, status } = turn;
  const wasStopped = status === 'interrupted';
  const retry = failure?.retry ?? 'new_key';
  const Icon = wasStopped ? CircleStop : CircleX;
  return (
    <div
      role="alert"
      className={`${BOX} grid gap-2 p-3 ${wasStopped ? '' : 'border-destructive/60'}`}
    >
      <p className="flex gap-2">
        <Icon className="mt-0.5 size-4 shrink-0 text-muted-foreground" aria-hidden />
        <span className="min-w-0 wrap-anywhere">{failure?.message ?? 'The turn did not end.'}</span>
      </p>
      {!wasStopped && <p className="text-muted-foreground">{ADVICE[retry]}</p>}
      {failure && !wasStopped && (
        <p className="text-xs wrap-anywhere text-muted-foreground">
          {failure.code}
          {failure.requestId && (
            <>
              {' '}
              · request <code>{failure.requestId}</code>
            </>
          )}
        </p>
      )}
      {isLast && (
        <div className="flex flex-wrap gap-2">
          {retry !== 'never' && (
            <Button variant="outline" size="small" onClick={() => actions.onRetry(turn)}>
              Try again
            </Button>
          )}
          <Button variant="outline" size="small" onClick={() => actions.onEdit(turn.input)}>
            Edit the message
          </Button>
        </div>
      )}
    </div>
  );
}

/** The line below an answer. It has its place from the start, so that nothing moves at the end. */
function StatusLine({ turn }: { turn: ThreadTurn }) {
  const { tokens, model, finishReason } = turn;
  const answer = turn.rounds
    .map(({ text }) => text)
    .join('\n\n')
    .trim();
  let content: ReactNode = null;
  if (isOpen(turn))
    content = (
      <span role="status" className="flex items-center gap-2">
        <LoaderCircle className="size-3.5 animate-spin" aria-hidden />
        {turn.status === 'sending' ? 'Sending…' : 'Answering…'}
      </span>
    );
  else if (turn.status === 'completed')
    content = (
      <>
        <span className="min-w-0 flex-1 truncate">
          {model}
          {tokens &&
            ` · ${tokens.prompt.toLocaleString()} + ${tokens.completion.toLocaleString()} tokens`}
          {finishReason && finishReason !== 'stop' && ` · ${finishReason}`}
        </span>
        {answer && <CopyButton text={answer} label="Copy" />}
      </>
    );
  return (
    <div className="flex h-8 items-center gap-2 text-xs tabular-nums text-muted-foreground">
      {content}
    </div>
  );
}

/** A turn: the message, and everything that the agent has answered so far. */
export const TurnMessage = memo(
  ({ turn, isLast, ...actions }: { turn: ThreadTurn; isLast: boolean } & TurnActions) => (
    <article
      id={turn.number === undefined ? undefined : `turn-${turn.number}`}
      aria-label={turn.number === undefined ? 'New turn' : `Turn ${turn.number}`}
      aria-busy={isOpen(turn)}
      className="grid gap-3"
    >
      <div className="ml-auto max-w-[85%] rounded-lg bg-accent px-3 py-2 whitespace-pre-wrap wrap-anywhere text-accent-foreground">
        <span className="sr-only">You: </span>
        {turn.input}
      </div>
      <div className="grid min-w-0 gap-2">
        {turn.rounds.map((round, index) => (
          <Round key={index} round={round} />
        ))}
        {(turn.status === 'failed' || turn.status === 'interrupted') && (
          <Failure turn={turn} isLast={isLast} {...actions} />
        )}
        <StatusLine turn={turn} />
      </div>
    </article>
  ),
);
