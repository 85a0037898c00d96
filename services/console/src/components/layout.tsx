import type { ComponentProps, ReactNode } from 'react';
import { cn } from './classNames.ts';

interface ViewProps {
  title: ReactNode;
  description?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
  className?: string;
}

/** A view: its heading, its actions and its content, which scrolls within the window. */
export function View({ title, description, actions, children, className }: ViewProps) {
  return (
    <div className="flex h-full min-h-0 flex-col">
      <header className="flex flex-wrap items-center justify-between gap-x-4 gap-y-2 border-b px-4 py-3 md:px-6">
        <div className="min-w-0">
          <h1 className="truncate text-lg font-semibold">{title}</h1>
          {description && <p className="text-muted-foreground">{description}</p>}
        </div>
        {actions && <div className="flex flex-wrap items-center gap-2">{actions}</div>}
      </header>
      {/* Focusable, so that the arrow keys scroll a view without controls. */}
      <div tabIndex={0} className={cn('min-h-0 flex-1 overflow-y-auto p-4 md:p-6', className)}>
        {children}
      </div>
    </div>
  );
}

/** A part of a view; with a title it is a region of that name. */
export const Card = ({ className, title, children, ...props }: ComponentProps<'section'>) => (
  <section
    aria-label={title}
    className={cn('rounded-lg border bg-card p-4', title && 'grid content-start gap-4', className)}
    {...props}
  >
    {title && <h2 className="text-base font-semibold">{title}</h2>}
    {children}
  </section>
);

const TONES = {
  neutral: 'bg-muted text-foreground',
  success: 'bg-success/15 text-success',
  warning: 'bg-warning/15 text-warning',
  destructive: 'bg-destructive/15 text-destructive',
} as const;

export const Badge = ({
  tone = 'neutral',
  className,
  ...props
}: ComponentProps<'span'> & { tone?: keyof typeof TONES }) => (
  <span
    className={cn(
      'inline-flex items-center gap-1 rounded-full px-2 py-0.5 text-xs font-medium whitespace-nowrap',
      TONES[tone],
      className,
    )}
    {...props}
  />
);

/** A place for content that is loading, of the size that the content will have. */
export const Skeleton = ({ className }: { className?: string }) => (
  <div aria-hidden className={cn('animate-pulse rounded-md bg-muted', className)} />
);
