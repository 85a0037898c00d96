import { useQuery } from '@tanstack/react-query';
import { api, dataOf, type Schema } from '../api/client.ts';
import { formatCount } from '../components/Chart.tsx';
import { Card } from '../components/layout.tsx';
import { Loaded } from '../components/states.tsx';
import { Facts } from '../components/tables.tsx';
import { Time } from '../components/Time.tsx';

const LABELS: Readonly<Record<keyof Schema<'StorageQuotas'>, string>> = {
  events_per_day: 'Events today',
  bytes_per_day: 'Bytes today',
  events: 'Events in total',
  bytes: 'Bytes in total',
  audits_per_day: 'Audited reads today',
};

const Bar = ({ percent }: { percent: number }) => {
  const background = `linear-gradient(to right, var(--color-primary) ${percent}%, var(--color-muted) 0)`;
  return <span aria-hidden className="h-1.5 rounded-full" style={{ background }} />;
};

/** The storage of the account, with its quotas. */
export function StorageUse() {
  const query = useQuery({
    queryKey: ['usage', 'storage'],
    queryFn: () => dataOf(api.GET('/v1/usage/storage')),
  });
  return (
    <Card className="grid gap-3">
      <h2 className="font-medium">Storage</h2>
      <Loaded query={query}>
        {({ quotas, resets_at }) => (
          <>
            <Facts
              className="xl:grid-cols-5"
              facts={Object.entries(quotas).map(([name, { used, limit }]) => [
                LABELS[name as keyof typeof LABELS],
                <span key={name} className="grid gap-1">
                  {formatCount(used)}
                  {limit !== null && <Bar percent={(used / limit) * 100} />}
                  <span className="text-xs text-muted-foreground">
                    {limit === null
                      ? 'no quota'
                      : `${Math.round((used / limit) * 100)} % of ${formatCount(limit)}`}
                  </span>
                </span>,
              ])}
            />
            <p className="text-xs text-muted-foreground">
              The quotas of a day begin again at <Time value={resets_at} />.
            </p>
          </>
        )}
      </Loaded>
    </Card>
  );
}
