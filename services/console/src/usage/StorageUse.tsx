import { useQuery } from '@tanstack/react-query';
import { api, dataOf, type Schema } from '../api/client.ts';
import { formatCount } from '../components/Chart.tsx';
import { Card, Skeleton } from '../components/layout.tsx';
import { ErrorState } from '../components/states.tsx';
import { Time } from '../components/Time.tsx';

const LABELS: Readonly<Record<keyof Schema<'StorageQuotas'>, string>> = {
  events_per_day: 'Events today',
  bytes_per_day: 'Bytes today',
  events: 'Events in total',
  bytes: 'Bytes in total',
  audits_per_day: 'Audited reads today',
};

/** What the account stores, and how much it may. */
export function StorageUse() {
  const { data, error, refetch } = useQuery({
    queryKey: ['usage', 'storage'],
    queryFn: () => dataOf(api.GET('/v1/usage/storage')),
  });
  return (
    <Card>
      <h2 className="font-medium">Storage</h2>
      {error && <ErrorState error={error} onRetry={() => void refetch()} />}
      {!data && !error && <Skeleton className="mt-3 h-28" />}
      {data && (
        <>
          <p className="text-muted-foreground">
            The quotas of a day begin again at <Time value={data.resets_at} />.
          </p>
          <dl className="mt-3 grid grid-cols-2 gap-4 md:grid-cols-3 xl:grid-cols-5">
            {Object.entries(data.quotas).map(([name, { used, limit }]) => (
              <div key={name}>
                <dt className="text-muted-foreground">{LABELS[name as keyof typeof LABELS]}</dt>
                <dd className="grid gap-1 text-xs text-muted-foreground tabular-nums">
                  <span className="text-base font-semibold text-foreground">
                    {formatCount(used)}
                  </span>
                  {limit !== null && (
                    <progress value={used} max={limit} aria-hidden className="h-1.5 w-full" />
                  )}
                  {limit === null
                    ? 'no quota'
                    : `${Math.round((used / limit) * 100)} % of ${formatCount(limit)}`}
                </dd>
              </div>
            ))}
          </dl>
        </>
      )}
    </Card>
  );
}
