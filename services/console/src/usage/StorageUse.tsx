import { useQuery } from '@tanstack/react-query';
import { api, dataOf, type Schema } from '../api/client.ts';
import { Card, Skeleton } from '../components/layout.tsx';
import { ErrorState } from '../components/states.tsx';
import { Time } from '../components/Time.tsx';
import { formatCount } from '../components/charts/ChartFrame.tsx';

type Quotas = Schema<'StorageQuotas'>;

const KIB = 1024;
const UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];

function formatBytes(bytes: number): string {
  const unit = Math.min(Math.floor(Math.log(Math.max(bytes, 1)) / Math.log(KIB)), UNITS.length - 1);
  const value = bytes / KIB ** unit;
  return `${formatCount(Math.round(value * 10) / 10)} ${UNITS[unit]}`;
}

const LABELS: Readonly<Record<keyof Quotas, string>> = {
  events_per_day: 'Events today',
  bytes_per_day: 'Bytes today',
  events: 'Events in total',
  bytes: 'Bytes in total',
  audits_per_day: 'Audited reads today',
};

function Quota({ name, quota }: { name: keyof Quotas; quota: Schema<'StorageQuota'> }) {
  const format = name.startsWith('bytes') ? formatBytes : formatCount;
  const { used, limit } = quota;
  const percent = limit === null ? undefined : Math.round((used / limit) * 100);
  return (
    <div className="grid gap-1">
      <dt className="text-muted-foreground">{LABELS[name] ?? name}</dt>
      <dd className="grid gap-1">
        <span className="text-base font-semibold tabular-nums" title={formatCount(used)}>
          {format(used)}
        </span>
        {limit === null ? (
          <span className="text-xs text-muted-foreground">no quota</span>
        ) : (
          <>
            <progress
              value={Math.min(used, limit)}
              max={limit}
              aria-label={`${LABELS[name] ?? name}: part of the quota that is used`}
              className="h-1.5 w-full"
            />
            <span className="text-xs text-muted-foreground tabular-nums">
              {percent} % of {format(limit)}
            </span>
          </>
        )}
      </dd>
    </div>
  );
}

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
      {!data && !error && <Skeleton className="mt-3 h-20" />}
      {data && (
        <>
          <p className="text-muted-foreground">
            The quotas of a day begin again at <Time value={data.resets_at} />.
          </p>
          <dl className="mt-3 grid grid-cols-2 gap-4 md:grid-cols-5">
            {Object.entries(data.quotas).map(([name, quota]) => (
              <Quota key={name} name={name as keyof Quotas} quota={quota} />
            ))}
          </dl>
        </>
      )}
    </Card>
  );
}
