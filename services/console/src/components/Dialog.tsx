import { X } from 'lucide-react';
import { useId, useLayoutEffect, useRef, type ReactNode } from 'react';
import { Button } from './Button.tsx';
import { cn } from './classNames.ts';

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ReactNode;
  className?: string;
}

/**
 * A modal dialog, open while it is rendered. The browser traps the focus, closes it on Escape and
 * restores the focus. The control with `data-autofocus` gets the focus first.
 */
export function Dialog({ title, onClose, children, className }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  // Before React removes it, which would not tell the view that the focus is back.
  const close = () => ref.current?.close();
  useLayoutEffect(() => {
    const dialog = ref.current!;
    dialog.showModal();
    // Without this the browser focuses the first button, which closes the dialog.
    dialog.querySelector<HTMLElement>('[data-autofocus]')?.focus();
    // A dialog that is removed while it is open does not restore the focus.
    return () => dialog.close();
  }, []);
  return (
    <dialog
      ref={ref}
      aria-labelledby={titleId}
      // Strict mode closes the dialog and opens it again.
      onClose={() => ref.current?.open || onClose()}
      onClick={(event) => event.target === ref.current && close()}
      className={cn(
        'm-auto max-h-[85dvh] w-[min(36rem,calc(100vw-2rem))] rounded-lg border bg-card p-0 text-foreground shadow-xl backdrop:bg-black/50',
        className,
      )}
    >
      <div className="p-5">
        <header className="mb-4 flex items-center justify-between gap-4">
          <h2 id={titleId} className="text-base font-semibold">
            {title}
          </h2>
          <Button variant="ghost" size="icon" onClick={close} aria-label="Close">
            <X />
          </Button>
        </header>
        {children}
      </div>
    </dialog>
  );
}
