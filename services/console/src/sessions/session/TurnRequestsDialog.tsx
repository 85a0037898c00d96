import { useQuery } from '@tanstack/react-query';
import { api, pageOf } from '../../api/client.ts';
import { CopyButton } from '../../components/Button.tsx';
import { Dialog } from '../../components/Dialog.tsx';
import { Badge, EmptyState, Loaded } from '../../components/view.tsx';
import { Code } from './texts.tsx';

const MOST_REQUESTS = 1_000;

/** The requests that a turn sent to its model, rebuilt from events. */
export function TurnRequestsDialog(props: {
  sessionId: string;
  turn: number;
  onClose: () => void;
}) {
  const { sessionId, turn, onClose } = props;
  const query = useQuery({
    queryKey: ['session', sessionId, 'requests', turn],
    queryFn: ({ signal }) => {
      const path = { sessionId, turn: String(turn) };
      const params = { path, query: { limit: MOST_REQUESTS } };
      return pageOf(api.GET('/v1/sessions/{sessionId}/turns/{turn}/requests', { params, signal }));
    },
  });
  return (
    <Dialog
      title={`Model requests of turn ${turn}`}
      onClose={onClose}
      className="w-[min(60rem,calc(100vw-2rem))]"
    >
      <Loaded query={query} skeleton="h-40">
        {({ rows }) => (
          <div className="grid gap-4">
            {rows.length === 0 && (
              <EmptyState title="No request yet">
                A request is listed as soon as the model has answered it.
              </EmptyState>
            )}
            {rows.map(({ call, purpose, round, request, request_sha256, matches }) => {
              const json = JSON.stringify(request, null, 2);
              return (
                <section key={call} className="grid min-w-0 gap-2">
                  <header className="flex flex-wrap items-center gap-2">
                    <h3 className="flex-1 font-medium">
                      {purpose === 'compaction'
                        ? 'Summary of earlier turns'
                        : `Model call ${round}`}
                    </h3>
                    <Badge tone={matches ? 'success' : 'destructive'}>
                      {matches ? 'Hash matches' : 'Hash differs'}
                    </Badge>
                    <CopyButton text={json} label="Copy JSON" />
                  </header>
                  <p className="truncate text-xs text-muted-foreground">
                    SHA-256 <code>{request_sha256}</code>
                  </p>
                  <Code label={`Body of request ${call}`} text={json} />
                </section>
              );
            })}
          </div>
        )}
      </Loaded>
    </Dialog>
  );
}
