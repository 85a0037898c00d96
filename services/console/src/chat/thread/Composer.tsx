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

/** The next message. Enter sends it, Shift-Enter begins a line; a running answer can be stopped. */
export function Composer({ field, text, onChange, onSend, ...props }: ComposerProps) {
  const { isRunning, isStopping, onStop } = props;
  const button = isRunning
    ? { label: isStopping ? 'Stopping' : 'Stop', key: 'Escape', icon: Square, onClick: onStop }
    : { label: 'Send', key: 'Enter', icon: ArrowUp, onClick: onSend };
  return (
    <div className="border-t bg-background px-4 py-3">
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
        <Button
          size="icon"
          variant={isRunning ? 'outline' : 'primary'}
          className="size-10"
          aria-label={button.label}
          title={`${button.label} (${button.key})`}
          disabled={isRunning ? isStopping : text.trim() === ''}
          onClick={button.onClick}
        >
          <button.icon aria-hidden />
        </Button>
      </div>
    </div>
  );
}
