import { ArrowUp, Square, X } from 'lucide-react';
import { useRef, useState } from 'react';
import type { Schema } from '../api/client.ts';
import { Button, LinkButton } from '../components/Button.tsx';
import { Textarea } from '../components/Field.tsx';
import { Alert, EmptyState, ErrorState, Skeleton } from '../components/view.tsx';
import { useKeyDown } from '../shell/useShortcuts.ts';
import { Thread } from './thread/Thread.tsx';
import { useConversation } from './useConversation.ts';

interface SessionPaneProps {
  agent: Schema<'AgentDetail'>;
  sessionId: string | undefined;
  label: string;
  onSession: (sessionId: string) => void;
  /** Undefined for the only pane. */
  onClose: (() => void) | undefined;
}

/** One conversation with an agent. */
export function SessionPane({ agent, sessionId, label, onSession, onClose }: SessionPaneProps) {
  const chat = useConversation({ agentId: agent.agent_id, sessionId, onSession });
  const { turns, open, isLoading, loadError } = chat;
  const [text, setText] = useState('');
  const pane = useRef<HTMLElement>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  const send = (): void => {
    if (text.trim() === '' || open || isLoading) return;
    chat.send(text);
    setText('');
  };
  useKeyDown(({ key }) => {
    const focused = document.activeElement;
    const isHere = focused === document.body || pane.current?.contains(focused);
    if (key === 'Escape' && isHere && !document.querySelector('dialog[open]')) chat.stop();
  });
  const stop = chat.isStopping ? 'Stopping' : 'Stop';
  const button = open
    ? { label: stop, key: 'Escape', icon: Square, onClick: chat.stop }
    : { label: 'Send', key: 'Enter', icon: ArrowUp, onClick: send };
  const hasEarlier = (turns[0]?.number ?? 1) > 1;
  return (
    <section
      ref={pane}
      aria-label={label}
      className="flex min-h-0 min-w-[94%] flex-1 snap-start flex-col not-last:border-r md:min-w-88"
    >
      <header className="flex min-h-11 items-center justify-between gap-2 border-b px-4">
        <h2 className="truncate text-sm font-medium">{label}</h2>
        <div className="flex items-center">
          {sessionId !== undefined && (
            <LinkButton
              variant="link"
              size="small"
              to="/sessions/$sessionId"
              params={{ sessionId }}
            >
              {hasEarlier ? 'Earlier turns' : 'Open session'}
            </LinkButton>
          )}
          {onClose && (
            <Button variant="ghost" size="icon" aria-label={`Close ${label}`} onClick={onClose}>
              <X aria-hidden />
            </Button>
          )}
        </div>
      </header>
      <Thread
        turns={turns}
        onRetry={chat.retry}
        onEdit={(input) => {
          setText(input);
          field.current?.focus();
        }}
      >
        {isLoading && <Skeleton className="h-40" />}
        {loadError && <ErrorState error={loadError} onRetry={chat.reload} />}
        {turns.length === 0 && !isLoading && !loadError && (
          <EmptyState title={`A new session with ${agent.name}`}>
            Write the first message below. Each turn is recorded, and the session can be continued
            later.
          </EmptyState>
        )}
      </Thread>
      {chat.stopError && <Alert title={chat.stopError.message} />}
      <div className="border-t bg-background px-4 py-3">
        <div className="mx-auto flex max-w-3xl items-end gap-2">
          <Textarea
            ref={field}
            rows={1}
            aria-label="Message"
            placeholder="Write a message"
            className="field-sizing-content max-h-48 min-h-10 resize-none"
            value={text}
            onChange={({ target }) => setText(target.value)}
            onKeyDown={(event) => {
              // Shift-Enter begins a line.
              if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return;
              event.preventDefault();
              send();
            }}
          />
          <Button
            size="icon"
            variant={open ? 'outline' : 'primary'}
            className="size-10"
            aria-label={button.label}
            title={`${button.label} (${button.key})`}
            disabled={open ? chat.isStopping : text.trim() === ''}
            onClick={button.onClick}
          >
            <button.icon aria-hidden />
          </Button>
        </div>
      </div>
    </section>
  );
}
