import { CircleAlert, Lock } from 'lucide-react';
import type { ReactNode } from 'react';
import type { UseQueryResult } from '@tanstack/react-query';
import { ApiError } from '../api/apiError.ts';
import { Button } from './Button.tsx';
import { Skeleton } from './layout.tsx';

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
      {onRetry && !isForbidden && (
        <Button variant="outline" onClick={onRetry}>
          Try again
        </Button>
      )}
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
