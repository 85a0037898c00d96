import { ArrowUp, Square } from 'lucide-react';
import type { RefObject } from 'react';
import { Button } from '../../components/Button.tsx';
import { Textarea } from '../../components/Field.tsx';

interface ComposerProps {
  field: RefObject<HTMLTextAreaElement | null>;
  text: string;
  onChange: (text: string) => void;
  onSend: () => void;
  onStop: () => void;
  isRunning: boolean;
  isStopping: boolean;
}

/** The message to send: Enter sends, Shift-Enter begins a line. While an answer comes, it can be stopped. */
export function Composer({ field, text, onChange, onSend, ...props }: ComposerProps) {
  const { isRunning, isStopping, onStop } = props;
  return (
    <form
      className="border-t bg-background px-4 py-3"
      onSubmit={(event) => {
        event.preventDefault();
        onSend();
      }}
    >
      <div className="mx-auto flex max-w-3xl items-end gap-2">
        <Textarea
          ref={field}
          rows={1}
          aria-label="Message"
          placeholder="Write a message"
          className="field-sizing-content max-h-48 min-h-10 resize-none"
          value={text}
          onChange={({ target }) => onChange(target.value)}
          onKeyDown={(event) => {
            if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return;
            event.preventDefault();
            onSend();
          }}
        />
        {isRunning ? (
          <Button
            variant="outline"
            size="icon"
            className="size-10"
            aria-label={isStopping ? 'Stopping' : 'Stop'}
            title="Stop (Escape)"
            disabled={isStopping}
            onClick={onStop}
          >
            <Square aria-hidden />
          </Button>
        ) : (
          <Button
            type="submit"
            size="icon"
            className="size-10"
            aria-label="Send"
            title="Send (Enter)"
            disabled={text.trim() === ''}
          >
            <ArrowUp aria-hidden />
          </Button>
        )}
      </div>
    </form>
  );
}
