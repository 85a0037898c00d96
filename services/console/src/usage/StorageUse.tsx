import { useQuery } from '@tanstack/react-query';
import { api, dataOf, type Schema } from '../api/client.ts';
import { Card, DataTable, Loaded, Time } from '../components/view.tsx';
import { LimitUse } from '../components/LimitUse.tsx';

const REFRESH_MS = 15_000;
const LABELS: Readonly<Record<keyof Schema<'StorageQuotas'>, string>> = {
  events_per_day: 'Events today',
  bytes_per_day: 'Bytes today',
  events: 'Events in total',
  bytes: 'Bytes in total',
  audits_per_day: 'Audited reads today',
};

/** The storage of the account, with its quotas. */
export function StorageUse({ title }: { title: string }) {
  const query = useQuery({
    queryKey: ['usage', 'storage'],
    queryFn: () => dataOf(api.GET('/v1/usage/storage')),
    refetchInterval: REFRESH_MS,
    retry: false,
  });
  return (
    <Card title={title}>
      <Loaded query={query}>
        {({ quotas, resets_at }) => (
          <>
            <DataTable
              caption="Quotas and their use"
              columns={['Quota', '#In use']}
              rows={Object.entries(quotas).map(([name, quota]) => {
                const label = LABELS[name as keyof typeof LABELS];
                const isBytes = name.startsWith('bytes');
                return {
                  key: name,
                  cells: [label, <LimitUse label={label} isBytes={isBytes} {...quota} />],
                };
              })}
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
