import { Link } from '@tanstack/react-router';
import { X } from 'lucide-react';
import { useEffect, useEffectEvent, useRef, useState } from 'react';
import type { Schema } from '../api/client.ts';
import { Button } from '../components/Button.tsx';
import { cn } from '../components/classNames.ts';
import { Skeleton } from '../components/layout.tsx';
import { Alert, ErrorState } from '../components/states.tsx';
import { Composer } from './thread/Composer.tsx';
import { Thread } from './thread/Thread.tsx';
import { useFollowEnd } from './thread/useFollowEnd.ts';
import { useConversation } from './useConversation.ts';

/** What the offline model does with the beginning of a message. */
const OFFLINE_EXAMPLES = [
  'What is 12*34?',
  '/slow Tell me a story about a log.',
  '/reason How many events does a turn have?',
  '/call calculator {"expression":"6*7"} What is the answer?',
  '/fail 429 This fails.',
];

interface StartProps {
  agent: Schema<'AgentDetail'>;
  onChoose: (text: string) => void;
}

const Start = ({ agent, onChoose }: StartProps) => (
  <div className="grid gap-3 py-8 text-center">
    <h3 className="font-medium">A new session with {agent.name}</h3>
    <p className="text-muted-foreground">
      Write the first message below. Each turn is recorded, and the session can be continued later.
    </p>
    {agent.config.model.startsWith('offline') && (
      <>
        <p className="text-muted-foreground">
          {agent.config.model} needs no provider. It does what a message says:
        </p>
        <ul className="mx-auto grid gap-2">
          {OFFLINE_EXAMPLES.map((text) => (
            <li key={text}>
              <Button
                variant="outline"
                size="small"
                className="h-auto max-w-full py-1.5 font-mono text-xs whitespace-normal"
                onClick={() => onChoose(text)}
              >
                {text}
              </Button>
            </li>
          ))}
        </ul>
      </>
    )}
  </div>
);

interface SessionPaneProps {
  agent: Schema<'AgentDetail'>;
  sessionId: string | undefined;
  label: string;
  isShownOnPhone: boolean;
  onSession: (sessionId: string) => void;
  /** Undefined for the only pane. */
  onClose: (() => void) | undefined;
}

/** One conversation with an agent. */
export function SessionPane({ agent, sessionId, label, ...props }: SessionPaneProps) {
  const conversation = useConversation({
    agentId: agent.agent_id,
    sessionId,
    onSession: props.onSession,
  });
  const { turns, open, error, isLoading } = conversation;
  const [text, setText] = useState('');
  const pane = useRef<HTMLElement>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  const end = useFollowEnd();
  const write = (input: string): void => {
    setText(input);
    field.current?.focus();
  };
  const send = (): void => {
    if (text.trim() === '' || open || isLoading) return;
    conversation.send(text);
    setText('');
    end.toEnd();
  };
  const onEscape = useEffectEvent((event: KeyboardEvent): void => {
    const focused = document.activeElement;
    const isHere = focused === document.body || pane.current?.contains(focused);
    if (event.key !== 'Escape' || !isHere || document.querySelector('dialog[open]')) return;
    if (open) conversation.stop();
  });
  useEffect(() => {
    const listen = (event: KeyboardEvent): void => onEscape(event);
    addEventListener('keydown', listen);
    return () => removeEventListener('keydown', listen);
  }, []);
  const failed = error && turns.length === 0;
  return (
    <section
      ref={pane}
      aria-label={label}
      className={cn(
        'min-h-0 min-w-0 flex-1 flex-col md:flex md:min-w-88 md:not-last:border-r',
        props.isShownOnPhone ? 'flex' : 'hidden',
      )}
    >
      <header className="flex min-h-11 items-center justify-between gap-2 border-b px-4">
        <h2 className="truncate text-sm font-medium">{label}</h2>
        <div className="flex items-center">
          {sessionId !== undefined && (
            <Button asChild variant="link" size="small">
              <Link to="/sessions/$sessionId" params={{ sessionId }}>
                Open session
              </Link>
            </Button>
          )}
          {props.onClose && (
            <Button
              variant="ghost"
              size="icon"
              aria-label={`Close ${label}`}
              onClick={props.onClose}
            >
              <X aria-hidden />
            </Button>
          )}
        </div>
      </header>
      <Thread
        turns={turns}
        end={end}
        hasEarlier={conversation.hasEarlier}
        onEarlier={conversation.loadEarlier}
        onRetry={conversation.retry}
        onEdit={write}
      >
        {isLoading && <Skeleton className="h-40" />}
        {failed && <ErrorState error={error} onRetry={conversation.reload} />}
        {!isLoading && !failed && <Start agent={agent} onChoose={write} />}
      </Thread>
      {error && turns.length > 0 && (
        <div className="border-t p-3">
          <Alert title={error.message} />
        </div>
      )}
      <Composer
        field={field}
        text={text}
        onChange={setText}
        onSend={send}
        onStop={conversation.stop}
        isRunning={open !== undefined}
        isStopping={conversation.isStopping}
      />
    </section>
  );
}
