import { useQuery, type QueryFunctionContext, type UseQueryResult } from '@tanstack/react-query';
import { ApiError } from '../api/apiError.ts';
import { api, apiFetch, dataOf } from '../api/client.ts';
import { Badge, Card, DataTable, Facts, Loaded, Time, View } from '../components/view.tsx';
import { formatBytes, LimitUse } from '../components/LimitUse.tsx';
import { formatDuration } from '../sessions/session/format.ts';
import { StorageUse } from '../usage/StorageUse.tsx';
import { partsOf, problemsOf, type HealthReport } from './healthParts.ts';
import { parseMetrics, resourcesOf, type MetricSamples } from './openMetrics.ts';
import { processFigures, type MetricsRead } from './processFigures.ts';

const REFRESH_MS = 3_000;

interface Reads {
  now: MetricsRead;
  before: MetricsRead | undefined;
}

/** Reads the metrics beside those of the latest read, which rates need. */
async function readMetrics({ client, queryKey }: QueryFunctionContext): Promise<Reads> {
  const headers = { accept: 'application/openmetrics-text; version=1.0.0' };
  const response = await apiFetch(new Request(new URL('/metrics', location.origin), { headers }));
  const now = { metrics: parseMetrics(await response.text()), at: Date.now() };
  return { now, before: client.getQueryData<Reads>(queryKey)?.now };
}

/** True for an error that another try won’t change: a missing scope, or metrics on another port. */
const isClosed = (error: unknown): boolean =>
  error instanceof ApiError && (error.status === 403 || error.status === 404);

const GOOD = ['active', 'relaying', 'up', 'up to date', 'sweeping'];
const IDLE = ['standing by', 'waiting', 'starting'];

const toneOf = (status: string) =>
  GOOD.includes(status) ? 'success' : IDLE.includes(status) ? 'neutral' : 'warning';

function Health({ health }: { health: HealthReport }) {
  const problems = problemsOf(health);
  return (
    <>
      <Card title="Needs attention">
        {problems.length === 0 && (
          <p className="text-muted-foreground">Nothing needs attention: all parts work.</p>
        )}
        {problems.map(({ name, what, first }) => (
          <div key={`${name} ${what}`} className="min-w-0 break-words">
            <h3 className="font-semibold">{name}</h3>
            <p>{what}</p>
            <p className="text-muted-foreground">First: {first}</p>
          </div>
        ))}
      </Card>
      <Card title="Parts">
        <DataTable
          caption="Parts and their state"
          columns={['Part', 'State', '#Lag', 'Detail']}
          rows={partsOf(health).map(({ name, status, lagMs, detail }) => ({
            key: name,
            cells: [
              name,
              <Badge tone={toneOf(status)}>{status}</Badge>,
              lagMs === undefined ? '' : formatDuration(lagMs),
              detail,
            ],
          }))}
        />
      </Card>
    </>
  );
}

function ProcessFacts({ now, before }: Reads) {
  const { delayMs, cores, startedAt, ...memory } = processFigures(now, before);
  return (
    <Facts
      className="md:grid-cols-2"
      facts={[
        ['Event-loop delay, p99', delayMs === undefined ? '…' : `≤ ${formatDuration(delayMs)}`],
        ['CPU, of one core', cores === undefined ? '…' : `${Math.round(cores * 100)} %`],
        ['Resident memory', formatBytes(memory.residentBytes)],
        ['Heap', `${formatBytes(memory.heapBytes)} of ${formatBytes(memory.heapLimitBytes)}`],
        startedAt !== undefined && ['Started', <Time value={startedAt} />],
      ]}
    />
  );
}

/** `memory_bodies` as “memory for bodies”. */
const wordsOf = (name: string): string =>
  name.replace(/^memory_/, 'memory for ').replaceAll('_', ' ');

const Limits = ({ metrics }: { metrics: MetricSamples }) => (
  <DataTable
    caption="Bounded resources"
    columns={['Resource', '#In use', '#Waiting', '#Rejected']}
    rows={resourcesOf(metrics).map(({ name, waiting, rejected, ...use }) => ({
      key: `${name} ${use.isBytes}`,
      cells: [
        wordsOf(name),
        <LimitUse label={wordsOf(name)} {...use} />,
        waiting.toLocaleString(),
        rejected.toLocaleString(),
      ],
    }))}
  />
);

/** The state of the process that answers: health, limits and their use, CPU and memory. */
export function SystemView() {
  const health = useQuery({
    queryKey: ['health'],
    queryFn: () => dataOf(api.GET('/health/ready')),
    refetchInterval: REFRESH_MS,
    retry: false,
  });
  const metrics = useQuery({
    queryKey: ['metrics'],
    queryFn: readMetrics,
    retry: false,
    refetchInterval: ({ state }) => (isClosed(state.error) ? false : REFRESH_MS),
    structuralSharing: false,
  });
  const { data, isError } = health;
  const status = isError ? 'not ready' : data?.status;
  const tone = isError ? 'destructive' : status === 'ready' ? 'success' : 'warning';
  // An earlier response is not the present state.
  const state = isError ? ({ ...health, data: undefined } as UseQueryResult<typeof data>) : health;
  return (
    <View
      title={
        <span className="flex items-center gap-3">
          System {status !== undefined && <Badge tone={tone}>{status}</Badge>}
        </span>
      }
      description="The process that answers this page. It refreshes every 3 seconds."
    >
      <div className="mx-auto grid max-w-6xl grid-cols-[minmax(0,1fr)] gap-4">
        <Loaded query={state} skeleton="h-96">
          {(report) => <Health health={report as HealthReport} />}
        </Loaded>
        <div className="grid grid-cols-[minmax(0,1fr)] items-start gap-4 lg:grid-cols-2">
          <Card title="Process">
            <Loaded query={metrics}>{(reads) => <ProcessFacts {...reads} />}</Loaded>
          </Card>
          <StorageUse title="Quotas of your account" />
        </div>
        <Card title="Limits and their use">
          <p className="text-muted-foreground">
            Requests beyond a limit wait, or are rejected with 429 or 503.
          </p>
          <Loaded query={metrics} skeleton="h-96">
            {({ now }) => <Limits metrics={now.metrics} />}
          </Loaded>
        </Card>
      </div>
    </View>
  );
}
