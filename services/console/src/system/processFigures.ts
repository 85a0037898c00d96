import { numberIn, valueOf, type MetricSamples } from './openMetrics.ts';

/** MetricSamples, and when they were read, in milliseconds. */
export interface MetricsRead {
  metrics: MetricSamples;
  at: number;
}

const DELAY = 'turnlog_event_loop_delay_seconds';
const QUANTILE = 0.99;

/** How much a counter grew. A counter that is smaller than before began again. */
const growth = (before: number | undefined, now: number): number =>
  before !== undefined && before <= now ? now - before : now;

const bucketsOf = (metrics: MetricSamples): Map<number, number> =>
  new Map(
    metrics.get(`${DELAY}_bucket`)?.map(({ labels, value }) => [numberIn(labels['le']), value]),
  );

/** The upper bound of the bucket that holds a quantile of what came between two reads. */
function delayBetween(before: MetricSamples, now: MetricSamples): number | undefined {
  const earlier = bucketsOf(before);
  const buckets = [...bucketsOf(now)].toSorted(([a], [b]) => a - b);
  const grown = buckets.map(
    ([bound, value]) => [bound, growth(earlier.get(bound), value)] as const,
  );
  const total = grown.at(-1)?.[1] ?? 0;
  const bucket = grown.find(([, value]) => value >= total * QUANTILE);
  return total > 0 && bucket ? bucket[0] * 1_000 : undefined;
}

/**
 * The figures of a process from its latest metrics, and from those before for rates; undefined where
 * they are unknown. 99 of 100 timers ran at most `delayMs` late; `cores` is the CPU time of all
 * threads per time.
 */
export function processFigures(now: MetricsRead, before: MetricsRead | undefined) {
  const { metrics } = now;
  const cpu = valueOf(metrics, 'process_cpu_seconds_total');
  const cpuBefore = before && valueOf(before.metrics, 'process_cpu_seconds_total');
  const seconds = before ? (now.at - before.at) / 1_000 : 0;
  const started = valueOf(metrics, 'process_start_time_seconds');
  return {
    delayMs: before && delayBetween(before.metrics, metrics),
    cores:
      cpu !== undefined && cpuBefore !== undefined && seconds > 0
        ? growth(cpuBefore, cpu) / seconds
        : undefined,
    residentBytes: valueOf(metrics, 'process_resident_memory_bytes'),
    heapBytes: valueOf(metrics, 'nodejs_heap_size_used_bytes'),
    heapLimitBytes: valueOf(metrics, 'nodejs_heap_size_limit_bytes'),
    startedAt: started === undefined ? undefined : new Date(started * 1_000).toISOString(),
  };
}
