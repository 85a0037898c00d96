import { useId, type ComponentProps, type ReactElement, type ReactNode, cloneElement } from 'react';
import { cn } from './classNames.ts';

const CONTROL =
  'w-full rounded-md border border-input bg-background px-3 text-sm placeholder:text-muted-foreground disabled:opacity-60 aria-invalid:border-destructive';

export const Input = ({ className, ...props }: ComponentProps<'input'>) => (
  <input className={cn(CONTROL, 'h-9', className)} {...props} />
);

export const Textarea = ({ className, ...props }: ComponentProps<'textarea'>) => (
  <textarea className={cn(CONTROL, 'min-h-24 py-2', className)} {...props} />
);

export const Select = ({ className, ...props }: ComponentProps<'select'>) => (
  <select className={cn(CONTROL, 'h-9', className)} {...props} />
);

interface FieldProps {
  label: string;
  hint?: ReactNode;
  error?: string | undefined;
  children: ReactElement<{ id?: string; 'aria-describedby'?: string; 'aria-invalid'?: boolean }>;
}

/** A control with its label, and a hint or an error that screen readers read with it. */
export function Field({ label, hint, error, children }: FieldProps) {
  const id = useId();
  const note = error ?? hint;
  return (
    <div className="grid gap-1.5">
      <label htmlFor={id} className="font-medium">
        {label}
      </label>
      {cloneElement(children, {
        id,
        'aria-invalid': error !== undefined,
        ...(note && { 'aria-describedby': `${id}-note` }),
      })}
      {note && (
        <p
          id={`${id}-note`}
          className={cn('text-xs', error ? 'text-destructive' : 'text-muted-foreground')}
        >
          {note}
        </p>
      )}
    </div>
  );
}
