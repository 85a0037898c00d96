import type { ReactNode } from 'react';
import { Card, Skeleton } from '../components/layout.tsx';
import { ErrorState } from '../components/states.tsx';
import { Time } from '../components/Time.tsx';
import { formatBytes, formatMs } from './figures.ts';
import { processFigures, type MetricsRead, type ProcessFigures } from './processFigures.ts';

const WIDTH = 120;
const HEIGHT = 24;

/** The last minutes of a figure. Its axis begins at zero. */
function Sparkline({ values, label }: { values: readonly (number | undefined)[]; label: string }) {
  const known = values.filter((value) => value !== undefined);
  const most = Math.max(...known, 0) || 1;
  const step = WIDTH / Math.max(known.length - 1, 1);
  const points = known.map(
    (value, at) =>
      `${(at * step).toFixed(1)},${(HEIGHT - 1 - (value / most) * (HEIGHT - 2)).toFixed(1)}`,
  );
  return (
    <svg
      role="img"
      aria-label={`${label}, the last minutes`}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      className="h-6 w-full text-primary"
      preserveAspectRatio="none"
    >
      {points.length > 1 && (
        <polyline
          points={points.join(' ')}
          fill="none"
          stroke="currentColor"
          strokeWidth="1.5"
          vectorEffect="non-scaling-stroke"
        />
      )}
    </svg>
  );
}

function Figure({
  name,
  value,
  history,
}: {
  name: string;
  value: ReactNode;
  history: readonly (number | undefined)[];
}) {
  return (
    <div className="grid grid-cols-[minmax(0,1fr)_auto] items-center gap-x-4 sm:grid-cols-[10rem_8rem_minmax(0,1fr)]">
      <dt className="text-muted-foreground">{name}</dt>
      <dd className="text-right tabular-nums">{value}</dd>
      <dd className="col-span-2 sm:col-span-1">
        <Sparkline values={history} label={name} />
      </dd>
    </div>
  );
}

const shown = (value: number | undefined, format: (value: number) => string): string =>
  value === undefined ? '…' : format(value);

/** Event loop, CPU and memory of the process. */
export function ProcessCard({ reads, error }: { reads: readonly MetricsRead[]; error: unknown }) {
  const all = reads.map((read, at) => processFigures(read, reads[at - 1]));
  const now = all.at(-1);
  const history = (of: (figures: ProcessFigures) => number | undefined) => all.map(of);
  return (
    <Card aria-labelledby="process-title" className="grid gap-3">
      <h2 id="process-title" className="text-base font-semibold">
        Process
      </h2>
      {error ? (
        <ErrorState error={error} />
      ) : !now ? (
        <Skeleton className="h-40" />
      ) : (
        <>
          <dl className="grid gap-2.5">
            <Figure
              name="Event-loop delay, p99"
              value={
                now.delayMs === Infinity
                  ? '> 10 s'
                  : shown(now.delayMs, (ms) => `≤ ${formatMs(ms)}`)
              }
              history={history(({ delayMs }) => (delayMs === Infinity ? undefined : delayMs))}
            />
            <Figure
              name="CPU"
              value={shown(now.cores, (cores) => `${(cores * 100).toFixed(0)} %`)}
              history={history(({ cores }) => cores)}
            />
            <Figure
              name="Resident memory"
              value={shown(now.residentBytes, formatBytes)}
              history={history(({ residentBytes }) => residentBytes)}
            />
            <Figure
              name="Heap"
              value={`${shown(now.heapBytes, formatBytes)} of ${shown(now.heapLimitBytes, formatBytes)}`}
              history={history(({ heapBytes }) => heapBytes)}
            />
          </dl>
          {now.startedAt !== undefined && (
            <p className="text-xs text-muted-foreground">
              Started <Time value={now.startedAt} />. CPU: 100 % is one core.
            </p>
          )}
        </>
      )}
    </Card>
  );
}
