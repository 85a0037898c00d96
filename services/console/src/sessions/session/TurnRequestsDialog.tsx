import { useQuery } from '@tanstack/react-query';
import { api, pageOf } from '../../api/client.ts';
import { toCurl } from '../../api/requestLog.ts';
import { CopyButton } from '../../components/CopyButton.tsx';
import { Dialog } from '../../components/Dialog.tsx';
import { Badge, Skeleton } from '../../components/layout.tsx';
import { EmptyState, ErrorState } from '../../components/states.tsx';
import { formatNumber } from './format.ts';

const MOST_REQUESTS = 1_000;

interface TurnRequestsDialogProps {
  sessionId: string;
  turn: number;
  onClose: () => void;
}

/** The requests that a turn sent to its model, rebuilt from events. */
export function TurnRequestsDialog({ sessionId, turn, onClose }: TurnRequestsDialogProps) {
  const path = `/v1/sessions/${sessionId}/turns/${turn}/requests`;
  const { data, error, refetch } = useQuery({
    queryKey: ['session', sessionId, 'requests', turn],
    queryFn: ({ signal }) =>
      pageOf(
        api.GET('/v1/sessions/{sessionId}/turns/{turn}/requests', {
          params: { path: { sessionId, turn: String(turn) }, query: { limit: MOST_REQUESTS } },
          signal,
        }),
      ),
  });
  const curl = toCurl({ method: 'GET', url: location.origin + path, body: undefined, headers: {} });
  return (
    <Dialog
      title={`Model requests of turn ${turn}`}
      isOpen
      onClose={onClose}
      className="w-[min(60rem,calc(100vw-2rem))]"
    >
      {error && <ErrorState error={error} onRetry={() => void refetch()} />}
      {!data && !error && <Skeleton className="h-40" />}
      {data?.rows.length === 0 && (
        <EmptyState title="No request yet">
          A request is listed as soon as the model has answered it.
        </EmptyState>
      )}
      <div className="grid gap-4">
        {data?.rows.map(({ call, purpose, round, request, request_sha256, matches }) => {
          const json = JSON.stringify(request, null, 2);
          return (
            <section key={call} aria-label={`Request ${call}`} className="grid min-w-0 gap-2">
              <header className="flex flex-wrap items-center gap-2">
                <h3 className="font-medium">
                  {purpose === 'compaction' ? 'Summary of earlier turns' : `Model call ${round}`}
                </h3>
                <Badge tone={matches ? 'success' : 'destructive'}>
                  {matches ? 'Hash matches' : 'Hash differs'}
                </Badge>
                <span className="ml-auto">
                  <CopyButton text={json} label="Copy JSON" />
                </span>
              </header>
              <p className="truncate text-xs text-muted-foreground">
                SHA-256 <code>{request_sha256}</code> · {formatNumber(json.length)} characters
              </p>
              <pre
                tabIndex={0}
                aria-label={`Body of request ${call}`}
                className="max-h-96 overflow-auto rounded-md bg-muted p-3 text-xs break-words whitespace-pre-wrap [overflow-wrap:anywhere]"
              >
                {json}
              </pre>
            </section>
          );
        })}
      </div>
      <footer className="mt-3 flex justify-end">
        <CopyButton text={curl} label="Copy as curl" />
      </footer>
    </Dialog>
  );
}
