import { X } from 'lucide-react';
import { useEffect, useId, useRef, type ReactNode } from 'react';
import { Button } from './Button.tsx';
import { cn } from './classNames.ts';

interface DialogProps {
  title: string;
  isOpen: boolean;
  onClose: () => void;
  children: ReactNode;
  className?: string;
}

/**
 * A modal dialog. The browser traps the focus, closes it on Escape and restores the focus. The
 * control with `data-autofocus` gets the focus first.
 */
export function Dialog({ title, isOpen, onClose, children, className }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useEffect(() => {
    dialog.current?.[isOpen ? 'showModal' : 'close']();
    // Without this the browser focuses the first button, which closes the dialog.
    dialog.current?.querySelector<HTMLElement>('[data-autofocus]')?.focus();
  }, [isOpen]);
  return (
    <dialog
      ref={dialog}
      aria-labelledby={titleId}
      onClose={onClose}
      onClick={(event) => event.target === dialog.current && onClose()}
      className={cn(
        'm-auto max-h-[85dvh] w-[min(36rem,calc(100vw-2rem))] rounded-lg border bg-card p-0 text-foreground shadow-xl backdrop:bg-black/50',
        className,
      )}
    >
      {isOpen && (
        <div className="p-5">
          <header className="mb-4 flex items-center justify-between gap-4">
            <h2 id={titleId} className="text-base font-semibold">
              {title}
            </h2>
            <Button variant="ghost" size="icon" onClick={onClose} aria-label="Close">
              <X />
            </Button>
          </header>
          {children}
        </div>
      )}
    </dialog>
  );
}
