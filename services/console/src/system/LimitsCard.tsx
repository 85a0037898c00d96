import type { Schema } from '../api/client.ts';
import { cn } from '../components/classNames.ts';
import { Card, Skeleton } from '../components/layout.tsx';
import { ErrorState } from '../components/states.tsx';
import { Time } from '../components/Time.tsx';
import { formatBytes } from './figures.ts';
import { resourcesOf, type Metrics, type Resource } from './openMetrics.ts';

const NEARLY = 0.8;

/** How much of a limit is used, as a bar. */
function Meter({ used, limit, label }: { used: number; limit: number; label: string }) {
  const share = Math.min(used / limit, 1);
  return (
    <div
      role="meter"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={limit}
      aria-valuenow={Math.min(used, limit)}
      className="h-1.5 w-full overflow-hidden rounded-full bg-muted"
    >
      <div
        className={cn(
          'h-full rounded-full',
          share >= 1 ? 'bg-destructive' : share >= NEARLY ? 'bg-warning' : 'bg-primary',
        )}
        style={{ width: `${share * 100}%` }}
      />
    </div>
  );
}

/** `memory_bodies` as “Memory for bodies”, `page_conversions_slow` as “Slow page conversions”. */
function words(name: string): string {
  const text = name
    .replace(/^memory_/, 'memory for ')
    .replace(/^(.*)_slow$/, 'slow $1')
    .replaceAll('_', ' ');
  return text.charAt(0).toUpperCase() + text.slice(1);
}

const formatOf =
  (unit: Resource['unit']) =>
  (value: number): string =>
    unit === 'bytes' ? formatBytes(value) : value.toLocaleString();

function LimitRow({ name, unit, used, limit, waiting = 0, ...rejected }: Resource) {
  const format = formatOf(unit);
  const title = `${words(name)}${unit === 'bytes' ? ', bytes' : ''}`;
  const rejections = rejected.rejectedByAccount + rejected.rejectedByProcess;
  return (
    <tr className="border-t">
      <th scope="row" className="py-1.5 pr-3 text-left font-normal break-words">
        {title}
      </th>
      <td className="hidden py-1.5 pr-3 sm:table-cell">
        {limit !== undefined && <Meter used={used} limit={limit} label={title} />}
      </td>
      <td className="py-1.5 pr-3 text-right tabular-nums">
        {limit === undefined ? '—' : `${format(used)} of ${format(limit)}`}
      </td>
      <td className="hidden py-1.5 pr-3 text-right tabular-nums sm:table-cell">
        {waiting.toLocaleString()}
      </td>
      <td
        className={cn(
          'py-1.5 text-right tabular-nums',
          rejections > 0 && 'font-medium text-destructive',
        )}
        title={`${rejected.rejectedByAccount} by an account’s share, ${rejected.rejectedByProcess} by the process’s`}
      >
        {rejections.toLocaleString()}
      </td>
    </tr>
  );
}

/** The bounded resources of the process, and what is used of them. */
export function LimitsCard({ metrics, error }: { metrics: Metrics | undefined; error: unknown }) {
  return (
    <Card aria-labelledby="limits-title" className="grid gap-3">
      <div>
        <h2 id="limits-title" className="text-base font-semibold">
          Limits and their use
        </h2>
        <p className="text-muted-foreground">
          Requests beyond a limit wait, or are rejected with 429 or 503.
        </p>
      </div>
      {error ? (
        <ErrorState error={error} />
      ) : !metrics ? (
        <Skeleton className="h-96" />
      ) : (
        <table className="w-full table-fixed">
          <thead className="text-xs text-muted-foreground">
            <tr>
              <th scope="col" className="pb-1 text-left font-normal sm:w-[30%]">
                Resource
              </th>
              <th scope="col" className="hidden pb-1 sm:table-cell">
                <span className="sr-only">Share</span>
              </th>
              <th scope="col" className="w-32 pr-3 pb-1 text-right font-normal sm:w-52">
                In use
              </th>
              <th
                scope="col"
                className="hidden w-20 pr-3 pb-1 text-right font-normal sm:table-cell"
              >
                Waiting
              </th>
              <th scope="col" className="w-16 pb-1 text-right font-normal">
                Rejected
              </th>
            </tr>
          </thead>
          <tbody>
            {resourcesOf(metrics).map((resource) => (
              <LimitRow key={`${resource.name} ${resource.unit}`} {...resource} />
            ))}
          </tbody>
        </table>
      )}
    </Card>
  );
}

const QUOTAS = [
  ['events_per_day', 'Events today', 'count'],
  ['bytes_per_day', 'Bytes today', 'bytes'],
  ['audits_per_day', 'Audit entries today', 'count'],
  ['events', 'Events in total', 'count'],
  ['bytes', 'Bytes in total', 'bytes'],
] as const;

/** What the account stores, and its quotas. */
export function QuotasCard({
  use,
  error,
}: {
  use: Schema<'StorageUse'> | undefined;
  error: unknown;
}) {
  return (
    <Card aria-labelledby="quotas-title" className="grid gap-3">
      <h2 id="quotas-title" className="text-base font-semibold">
        Quotas of your account
      </h2>
      {error ? (
        <ErrorState error={error} />
      ) : !use ? (
        <Skeleton className="h-40" />
      ) : (
        <>
          <dl className="grid gap-2.5">
            {QUOTAS.map(([name, label, unit]) => {
              const { used, limit } = use.quotas[name];
              const format = formatOf(unit);
              return (
                <div key={name} className="grid grid-cols-2 gap-x-4 gap-y-1">
                  <dt className="text-muted-foreground">{label}</dt>
                  <dd className="text-right tabular-nums">
                    {format(used)}
                    {limit === null ? ', no limit' : ` of ${format(limit)}`}
                  </dd>
                  {limit !== null && (
                    <dd className="col-span-2">
                      <Meter used={used} limit={limit} label={label} />
                    </dd>
                  )}
                </div>
              );
            })}
          </dl>
          <p className="text-xs text-muted-foreground">
            The day’s quotas begin again at <Time value={use.resets_at} />.
          </p>
        </>
      )}
    </Card>
  );
}
