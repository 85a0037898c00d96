import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useRef } from 'react';
import { Button } from '../components/Button.tsx';
import { Field, Input } from '../components/Field.tsx';
import { Skeleton, View } from '../components/layout.tsx';
import { ErrorState } from '../components/states.tsx';
import { Time } from '../components/Time.tsx';
import { useListKeys } from '../components/useListKeys.ts';
import { revisionQuery, revisionsQuery } from './agentQueries.ts';
import { ConfigDiff } from './ConfigDiff.tsx';

const route = getRouteApi('/agents/$agentId/revisions');

const CHANGES = { created: 'Created', updated: 'Changed', deleted: 'Deleted' } as const;
const SIDES = { from: 'From revision', to: 'To revision' } as const;

function Comparison({ agentId, from, to }: { agentId: string; from: number; to: number }) {
  const before = useQuery(revisionQuery(agentId, from));
  const after = useQuery(revisionQuery(agentId, to));
  const error = before.error ?? after.error;
  if (error) return <ErrorState error={error} />;
  if (!before.data || !after.data) return <Skeleton className="h-40" />;
  const names = [`Revision ${from}`, `Revision ${to}`] as const;
  return <ConfigDiff before={before.data} after={after.data} names={names} />;
}

/** The revisions of an agent, and what differs between any two of them. */
export function RevisionsView() {
  const { agentId } = route.useParams();
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const { data, error, hasNextPage, ...list } = useInfiniteQuery(revisionsQuery(agentId));
  const revisions = data?.pages.flatMap(({ rows }) => rows) ?? [];
  const [latest] = revisions;
  const entries = useRef<HTMLUListElement>(null);
  useListKeys(entries, revisions.length, () => undefined);
  const to = search.to ?? latest?.revision ?? 0;
  const from = search.from ?? Math.max(to - 1, 0);
  return (
    <View title={latest ? `Revisions of ${latest.name}` : 'Revisions'}>
      {error && <ErrorState error={error} onRetry={() => void list.refetch()} />}
      {list.isPending && <Skeleton className="h-40" />}
      {latest && (
        <div className="grid gap-6 md:grid-cols-[13rem_minmax(0,1fr)]">
          <nav aria-label="Revisions" className="max-h-64 overflow-y-auto md:max-h-none">
            <ul ref={entries} className="grid gap-0.5">
              {revisions.map(({ revision, change, recorded_at }, index) => (
                <li key={revision} data-index={index}>
                  <Link
                    to="/agents/$agentId/revisions"
                    params={{ agentId }}
                    search={{ from: Math.max(revision - 1, 0), to: revision }}
                    aria-current={revision === to || undefined}
                    className="block rounded-md px-3 py-1.5 hover:bg-muted aria-[current=true]:bg-accent aria-[current=true]:text-accent-foreground"
                  >
                    <span className="font-medium tabular-nums">
                      {CHANGES[change]} · {revision}
                    </span>
                    <Time value={recorded_at} className="block text-xs tabular-nums" />
                  </Link>
                </li>
              ))}
            </ul>
            {hasNextPage && (
              <Button variant="outline" size="small" onClick={() => void list.fetchNextPage()}>
                Load older revisions
              </Button>
            )}
          </nav>
          <div className="grid min-w-0 content-start gap-5">
            <h2 className="text-base font-semibold">
              From revision {from} to {to}
            </h2>
            <div className="flex gap-4">
              {(['from', 'to'] as const).map((side) => (
                <Field key={side} label={SIDES[side]}>
                  <Input
                    type="number"
                    min={0}
                    max={latest.revision}
                    className="w-28 tabular-nums"
                    value={side === 'from' ? from : to}
                    onChange={({ target }) => {
                      const next = { from, to, [side]: target.valueAsNumber };
                      if (target.validity.valid) void navigate({ search: next, replace: true });
                    }}
                  />
                </Field>
              ))}
            </div>
            <Comparison agentId={agentId} from={from} to={to} />
          </div>
        </div>
      )}
    </View>
  );
}
