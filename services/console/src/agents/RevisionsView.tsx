import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useRef } from 'react';
import type { Schema } from '../api/client.ts';
import { Button } from '../components/Button.tsx';
import { cn } from '../components/classNames.ts';
import { Field, Input } from '../components/Field.tsx';
import { Skeleton, View } from '../components/layout.tsx';
import { EmptyState, ErrorState } from '../components/states.tsx';
import { Time } from '../components/Time.tsx';
import { useListKeys } from '../components/useListKeys.ts';
import { revisionQuery, revisionsQuery } from './agentQueries.ts';
import { ConfigDiff } from './ConfigDiff.tsx';

const route = getRouteApi('/agents/$agentId/revisions');

const CHANGES = { created: 'Created', updated: 'Changed', deleted: 'Deleted' } as const;

interface RevisionListProps {
  agentId: string;
  revisions: readonly Schema<'AgentRevision'>[];
  shown: number;
}

/** The revisions; each links to what it changed. */
function RevisionList({ agentId, revisions, shown }: RevisionListProps) {
  const list = useRef<HTMLUListElement>(null);
  useListKeys(list, revisions.length, () => undefined);
  return (
    <ul ref={list} className="grid gap-0.5">
      {revisions.map(({ revision, change, recorded_at }, index) => (
        <li key={revision} data-index={index}>
          <Link
            to="/agents/$agentId/revisions"
            params={{ agentId }}
            search={{ from: Math.max(revision - 1, 0), to: revision }}
            aria-current={revision === shown ? 'true' : undefined}
            className={cn(
              'block rounded-md px-3 py-1.5 hover:bg-muted',
              revision === shown && 'bg-accent text-accent-foreground',
            )}
          >
            <span className="font-medium tabular-nums">
              {CHANGES[change]} · {revision}
            </span>
            <Time value={recorded_at} className="block text-xs tabular-nums" />
          </Link>
        </li>
      ))}
    </ul>
  );
}

function Comparison({ agentId, from, to }: { agentId: string; from: number; to: number }) {
  const before = useQuery(revisionQuery(agentId, from));
  const after = useQuery(revisionQuery(agentId, to));
  const error = before.error ?? after.error;
  if (error) return <ErrorState error={error} />;
  if (!before.data || !after.data) return <Skeleton className="h-40" />;
  if (from === to)
    return (
      <EmptyState title={to === 0 ? 'The first revision' : 'The same revision twice'}>
        {to === 0 ? 'Nothing came before it.' : 'Choose another one to compare it with.'}
      </EmptyState>
    );
  return (
    <ConfigDiff
      before={before.data}
      after={after.data}
      names={[`Revision ${from}`, `Revision ${to}`]}
    />
  );
}

/** The revisions of an agent, and what differs between any two of them. */
export function RevisionsView() {
  const { agentId } = route.useParams();
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const list = useInfiniteQuery(revisionsQuery(agentId));
  const revisions = list.data?.pages.flatMap(({ rows }) => rows) ?? [];
  const latest = revisions[0];
  const to = search.to ?? latest?.revision ?? 0;
  const from = search.from ?? Math.max(to - 1, 0);
  const choose = (name: 'from' | 'to') => (text: string) => {
    const revision = Number(text);
    if (text !== '' && Number.isInteger(revision) && revision >= 0)
      void navigate({ search: { from, to, [name]: revision }, replace: true });
  };
  return (
    <View
      title={latest ? `Revisions of ${latest.name}` : 'Revisions'}
      actions={
        <Button asChild variant="outline">
          <Link to="/agents/$agentId" params={{ agentId }}>
            Agent
          </Link>
        </Button>
      }
    >
      {list.error && <ErrorState error={list.error} onRetry={() => void list.refetch()} />}
      {list.isPending && <Skeleton className="h-40" />}
      {latest && (
        <div className="grid gap-6 md:grid-cols-[13rem_minmax(0,1fr)]">
          <nav aria-label="Revisions" className="max-h-64 overflow-y-auto md:max-h-none">
            <RevisionList agentId={agentId} revisions={revisions} shown={to} />
            {list.hasNextPage && (
              <Button
                variant="outline"
                size="small"
                className="mt-2"
                disabled={list.isFetching}
                onClick={() => void list.fetchNextPage()}
              >
                Load older revisions
              </Button>
            )}
          </nav>
          <div className="grid min-w-0 content-start gap-5">
            <h2 className="text-base font-semibold">
              From revision {from} to {to}
            </h2>
            <div className="flex gap-4">
              {(['from', 'to'] as const).map((name) => (
                <Field key={name} label={name === 'from' ? 'From revision' : 'To revision'}>
                  <Input
                    type="number"
                    min={0}
                    max={latest.revision}
                    className="w-28 tabular-nums"
                    value={name === 'from' ? from : to}
                    onChange={({ target }) => choose(name)(target.value)}
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
