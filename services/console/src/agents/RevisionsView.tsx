import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useRef } from 'react';
import { TextDiff } from '../components/diff/TextDiff.tsx';
import { NextPage } from '../components/EntryList.tsx';
import { TextField } from '../components/Field.tsx';
import { Facts, Loaded, Time, View } from '../components/view.tsx';
import { useListKeys } from '../shell/useShortcuts.ts';
import { comparisonQuery, revisionsQuery } from './agentQueries.ts';
import { diffFields, type StoredFields } from './agentFields.ts';

const route = getRouteApi('/agents/$agentId/revisions');

const CHANGES = { created: 'Created', updated: 'Changed', deleted: 'Deleted' } as const;

interface ConfigDiffProps {
  before: StoredFields;
  after: StoredFields;
  /** The names of both. */
  names: readonly [before: string, after: string];
}

/** The differences between two configurations of an agent, field by field; texts line by line. */
export function ConfigDiff({ before, after, names }: ConfigDiffProps) {
  const changes = diffFields(before, after);
  if (changes.length === 0)
    return <p className="text-muted-foreground">Both have the same configuration.</p>;
  return changes.map(({ field, isText, before: old = '', after: next = '' }) => (
    <section key={field} className="grid gap-1.5">
      <h3 className="font-medium">{field}</h3>
      {isText ? (
        <TextDiff labels={names} before={old} after={next} />
      ) : (
        <Facts
          className="md:grid-cols-2"
          facts={[
            [names[0], old || 'Not set'],
            [names[1], next || 'Not set'],
          ]}
        />
      )}
    </section>
  ));
}

/** The revisions of an agent, and what differs between any two of them. */
export function RevisionsView() {
  const { agentId } = route.useParams();
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const list = useInfiniteQuery(revisionsQuery(agentId));
  const { data: revisions = [] } = list;
  const entries = useRef<HTMLUListElement>(null);
  useListKeys(entries, revisions.length);
  const to = search.to ?? revisions[0]?.revision ?? 0;
  const from = search.from ?? Math.max(to - 1, 0);
  const comparison = comparisonQuery(agentId, from, to);
  const compared = useQuery({ ...comparison, enabled: list.isSuccess });
  const bind = (side: 'from' | 'to') => ({
    type: 'number',
    className: 'w-28 tabular-nums',
    value: String({ from, to }[side]),
    onValue: (text: string): void => {
      const next = { from, to, [side]: Number(text) };
      if (/^\d+$/.test(text)) void navigate({ search: next, replace: true });
    },
  });
  return (
    <View title={revisions[0] ? `Revisions of ${revisions[0].name}` : 'Revisions'}>
      <div className="grid gap-6 md:grid-cols-[13rem_minmax(0,1fr)]">
        <nav aria-label="Revisions" className="max-h-64 overflow-y-auto md:max-h-none">
          <Loaded query={list}>
            {() => (
              <ul ref={entries} className="grid gap-0.5">
                {revisions.map(({ revision, change, recorded_at }, index) => (
                  <li key={revision} data-index={index}>
                    <Link
                      to="/agents/$agentId/revisions"
                      params={{ agentId }}
                      search={{ from: Math.max(revision - 1, 0), to: revision }}
                      aria-current={revision === to || undefined}
                      className="block rounded-md px-3 py-1.5 font-medium tabular-nums hover:bg-muted aria-[current]:bg-accent aria-[current]:text-accent-foreground"
                    >
                      {CHANGES[change]} · {revision}
                      <Time value={recorded_at} className="block text-xs font-normal" />
                    </Link>
                  </li>
                ))}
              </ul>
            )}
          </Loaded>
          {list.hasNextPage && <NextPage query={list} label="Load older revisions" />}
        </nav>
        <div className="grid min-w-0 content-start gap-5">
          <h2 className="text-base font-semibold">
            From revision {from} to {to}
          </h2>
          <div className="flex gap-4">
            <TextField label="From revision" {...bind('from')} />
            <TextField label="To revision" {...bind('to')} />
          </div>
          <Loaded query={compared}>
            {(pair) => <ConfigDiff {...pair} names={[`Revision ${from}`, `Revision ${to}`]} />}
          </Loaded>
        </div>
      </div>
    </View>
  );
}
