import { CircleAlert, Lock } from 'lucide-react';
import type { ComponentProps, ReactNode } from 'react';
import type { UseQueryResult } from '@tanstack/react-query';
import { ApiError } from '../api/apiError.ts';
import { Button } from './Button.tsx';
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

const STATUS_TONES: Readonly<Partial<Record<string, keyof typeof TONES>>> = {
  same: 'success',
  completed: 'success',
  passed: 'success',
  running: 'success',
  changed: 'warning',
  interrupted: 'warning',
  budget_exhausted: 'warning',
  failed: 'destructive',
};

/** The status of a turn or of a replay, or an outcome. */
export const StatusBadge = ({ status }: { status: string }) => (
  <Badge tone={STATUS_TONES[status] ?? 'neutral'} className="capitalize">
    {status.replace('_', ' ')}
  </Badge>
);

/** A place for content that is loading, of the size that the content will have. */
export const Skeleton = ({ className }: { className?: string }) => (
  <div aria-hidden className={cn('motion-safe:animate-pulse rounded-md bg-muted', className)} />
);

const LOCAL = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

/** A time of RFC 3339 in the reader's time zone; the pointer shows it in UTC. */
export const Time = ({ value, className }: { value: string; className?: string }) => (
  <time dateTime={value} title={`${new Date(value).toISOString()} (UTC)`} className={className}>
    {LOCAL.format(new Date(value))}
  </time>
);

const MESSAGE = 'mx-auto grid max-w-lg justify-items-center gap-2 px-4 py-12 text-center';

/** A list without entries: says what to do first. */
export const EmptyState = (props: { title: string; children: ReactNode; action?: ReactNode }) => (
  <div className={MESSAGE}>
    <h2 className="text-base font-semibold">{props.title}</h2>
    <div className="text-muted-foreground">{props.children}</div>
    {props.action}
  </div>
);

const ADVICE: Readonly<Record<string, string>> = {
  same_key: 'Try again in a moment.',
  new_key: 'Start it again.',
  never: 'Change the request before you try again.',
};

/** A message about a part of a view, with what can be done about it. */
export const Alert = ({ title, children }: { title: string; children?: ReactNode }) => (
  <div role="alert" className="grid gap-2 rounded-md border border-destructive/60 p-3">
    <p className="flex items-center gap-2 font-medium">
      <CircleAlert className="size-4 shrink-0 text-destructive" aria-hidden /> {title}
    </p>
    {children}
  </div>
);

/** A failed request: what happened, what to try, and the id to look for in the server's log. */
export function ErrorState({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const failure = error instanceof ApiError ? error : undefined;
  const isForbidden = failure?.code === 'forbidden';
  const Icon = isForbidden ? Lock : CircleAlert;
  return (
    <div role="alert" className={MESSAGE}>
      <Icon className="size-6 text-muted-foreground" aria-hidden />
      <h2 className="text-base font-semibold">
        {isForbidden ? 'This view is closed to your key' : 'This did not work'}
      </h2>
      <p>{error instanceof Error ? error.message : String(error)}</p>
      <p className="text-muted-foreground">
        {isForbidden
          ? 'Sign in with a key that has this scope, or ask the person who manages your keys.'
          : (failure && ADVICE[failure.retry]) || 'Reload the page.'}
      </p>
      {failure?.requestId && (
        <p className="text-xs text-muted-foreground">
          {failure.code} · request <code>{failure.requestId}</code>
        </p>
      )}
      {onRetry && !isForbidden && <Button onClick={onRetry}>Try again</Button>}
    </div>
  );
}

interface LoadedProps<Data> {
  query: Pick<UseQueryResult<Data>, 'data' | 'error' | 'refetch'>;
  /** Of what is shown while it loads: the size that the data will have. */
  skeleton?: string;
  children: (data: Data) => ReactNode;
}

/** The data of a query, what is wrong if it failed, or a place of its size while it loads. */
export function Loaded<Data>({ query, skeleton = 'h-32', children }: LoadedProps<Data>) {
  if (query.data !== undefined) return children(query.data);
  if (query.error) return <ErrorState error={query.error} onRetry={() => void query.refetch()} />;
  return <Skeleton className={skeleton} />;
}

/** Names and values, in columns that fit the width. */
export const Facts = ({
  facts,
  className,
}: {
  facts: readonly (readonly [name: string, value: ReactNode] | false | undefined)[];
  className?: string;
}) => (
  <dl className={cn('grid grid-cols-2 gap-x-6 gap-y-2 md:grid-cols-4', className)}>
    {facts.map(
      (fact) =>
        fact && (
          <div key={fact[0]} className="min-w-0">
            <dt className="text-xs text-muted-foreground">{fact[0]}</dt>
            <dd className="break-words tabular-nums">{fact[1]}</dd>
          </div>
        ),
    )}
  </dl>
);

interface TableProps {
  /** The name of the table, for screen readers and as its heading if `isTitled`. */
  caption: string;
  isTitled?: boolean;
  /** Headings; one that begins with `#` heads numbers, which are aligned to the right. */
  columns: readonly string[];
  /** The cells of each row by a key; the first one names the row. */
  rows: readonly { key: string; cells: readonly ReactNode[] }[];
}

/** A table that scrolls sideways where it does not fit. */
export const DataTable = ({ caption, isTitled = false, columns, rows }: TableProps) => {
  const align = (index: number): string =>
    columns[index]!.startsWith('#') ? 'text-right tabular-nums whitespace-nowrap' : 'text-left';
  const cell = (index: number): string => cn('py-1.5 pr-4 align-top font-normal', align(index));
  return (
    <div className="overflow-x-auto" tabIndex={0} role="region" aria-label={caption}>
      <table className="w-full text-sm">
        <caption className={isTitled ? 'pb-2 text-left font-medium' : 'sr-only'}>{caption}</caption>
        <thead>
          <tr className="border-b text-xs text-muted-foreground">
            {columns.map((column, index) => (
              <th key={column} scope="col" className={cn(cell(index), 'font-medium')}>
                {column.replace(/^#/, '')}
              </th>
            ))}
          </tr>
        </thead>
        <tbody className="divide-y">
          {rows.map(({ key, cells: [first, ...cells] }) => (
            <tr key={key}>
              <th scope="row" className={cell(0)}>
                {first}
              </th>
              {cells.map((value, index) => (
                <td key={columns[index + 1]} className={cell(index + 1)}>
                  {value}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
};
