import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { ApiError } from '../api/apiError.ts';
import { api, apiFetch, dataOf } from '../api/client.ts';
import { Badge, Card, Skeleton, View } from '../components/layout.tsx';
import { ErrorState } from '../components/states.tsx';
import { partsOf, type Part } from './healthParts.ts';
import { LimitsCard, QuotasCard } from './LimitsCard.tsx';
import { parseMetrics } from './openMetrics.ts';
import { ProcessCard } from './ProcessCard.tsx';
import { formatMs } from './figures.ts';
import type { MetricsRead } from './processFigures.ts';

const REFRESH_MS = 3_000;
const QUOTAS_REFRESH_MS = 15_000;
/** The reads of the last five minutes. */
const MOST_READS = 100;

async function readMetrics(): Promise<MetricsRead> {
  const request = new Request(new URL('/metrics', location.origin), {
    headers: { accept: 'application/openmetrics-text; version=1.0.0' },
  });
  const text = await (await apiFetch(request)).text();
  return { metrics: parseMetrics(text), at: Date.now() };
}

function PartRow({ name, tone, status, lagMs, detail }: Part) {
  return (
    <tr className="border-t">
      <th scope="row" className="py-2 pr-3 text-left font-semibold break-words">
        {name}
        <span className="block font-normal break-words text-muted-foreground sm:hidden">
          {detail}
        </span>
      </th>
      <td className="py-2 pr-3">
        <Badge tone={tone}>{status}</Badge>
      </td>
      <td className="py-2 pr-3 text-right tabular-nums">
        {lagMs === undefined ? '' : formatMs(lagMs)}
      </td>
      <td className="hidden py-2 break-words text-muted-foreground sm:table-cell">{detail}</td>
    </tr>
  );
}

/** What is wrong, and what to do first. */
function Attention({ parts }: { parts: readonly Part[] }) {
  const troubled = parts.filter(({ problems }) => problems.length > 0);
  if (troubled.length === 0)
    return <p className="text-muted-foreground">Nothing needs attention: all parts work.</p>;
  return (
    <ul className="grid gap-3">
      {troubled.flatMap(({ name, problems }) =>
        problems.map(({ what, first }) => (
          <li key={`${name} ${what}`} className="min-w-0">
            <h3 className="font-semibold">{name}</h3>
            <p className="break-words">{what}</p>
            <p className="text-muted-foreground">
              <span className="font-medium">First: </span>
              {first}
            </p>
          </li>
        )),
      )}
    </ul>
  );
}

function Health({ parts }: { parts: readonly Part[] }) {
  return (
    <>
      <Card aria-labelledby="attention-title" className="grid gap-3">
        <h2 id="attention-title" className="text-base font-semibold">
          Needs attention
        </h2>
        <Attention parts={parts} />
      </Card>
      <Card aria-labelledby="parts-title" className="grid gap-2">
        <h2 id="parts-title" className="text-base font-semibold">
          Parts
        </h2>
        <table className="w-full table-fixed">
          <thead className="text-xs text-muted-foreground">
            <tr>
              <th scope="col" className="w-2/5 pb-1 text-left font-normal sm:w-1/4">
                Part
              </th>
              <th scope="col" className="w-28 pb-1 text-left font-normal">
                State
              </th>
              <th scope="col" className="w-20 pr-3 pb-1 text-right font-normal">
                Lag
              </th>
              <th scope="col" className="hidden pb-1 text-left font-normal sm:table-cell">
                Detail
              </th>
            </tr>
          </thead>
          <tbody>
            {parts.map((part) => (
              <PartRow key={part.name} {...part} />
            ))}
          </tbody>
        </table>
      </Card>
    </>
  );
}

/** The state of the process that answers: health, limits and their use, CPU and memory. */
export function SystemView() {
  const health = useQuery({
    queryKey: ['health'],
    queryFn: () => dataOf(api.GET('/health/ready')),
    refetchInterval: REFRESH_MS,
    retry: false,
    placeholderData: keepPreviousData,
  });
  const metrics = useQuery({
    queryKey: ['metrics'],
    queryFn: readMetrics,
    retry: false,
    refetchInterval: ({ state }) => (isClosed(state.error) ? false : REFRESH_MS),
    structuralSharing: false,
  });
  const quotas = useQuery({
    queryKey: ['storage-use'],
    queryFn: () => dataOf(api.GET('/v1/usage/storage')),
    refetchInterval: QUOTAS_REFRESH_MS,
    retry: false,
  });
  const [reads, setReads] = useState<readonly MetricsRead[]>([]);
  const latest = metrics.data;
  useEffect(() => {
    if (latest) setReads((all) => [...all, latest].slice(-MOST_READS));
  }, [latest]);
  const isReady = !health.isError;
  return (
    <View
      title={
        <span className="flex items-center gap-3">
          System
          {health.isPending ? null : isReady ? (
            <Badge tone={health.data?.status === 'ready' ? 'success' : 'warning'}>
              {health.data?.status === 'ready' ? 'Ready' : 'Degraded'}
            </Badge>
          ) : (
            <Badge tone="destructive">Not ready</Badge>
          )}
        </span>
      }
      description="The process that answers this page. It refreshes every 3 seconds."
    >
      <div className="mx-auto grid max-w-6xl gap-4">
        {health.isPending && <Skeleton className="h-96" />}
        {health.isError && (
          <Card>
            <ErrorState error={health.error} onRetry={() => void health.refetch()} />
          </Card>
        )}
        {health.data && isReady && <Health parts={partsOf(health.data)} />}
        <div className="grid items-start gap-4 lg:grid-cols-2">
          <ProcessCard reads={reads} error={metrics.error} />
          <QuotasCard use={quotas.data} error={quotas.error} />
        </div>
        <LimitsCard metrics={latest?.metrics} error={metrics.error} />
      </div>
    </View>
  );
}

/** True for an error that another try won’t change: a missing scope, or metrics on another port. */
const isClosed = (error: unknown): boolean =>
  error instanceof ApiError && (error.status === 403 || error.status === 404);
