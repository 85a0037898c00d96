import { valueOf, type MetricSamples } from './openMetrics.ts';

/** Figures of a process; undefined where they are unknown, as rates are before a second read. */
export interface ProcessFigures {
  /** 99 of 100 timers ran at most so late, in milliseconds (the bound of a histogram bucket). */
  delayMs: number | undefined;
  /** CPU time per time, of all threads: 1 is one core. */
  cores: number | undefined;
  residentBytes: number | undefined;
  heapBytes: number | undefined;
  heapLimitBytes: number | undefined;
  startedAt: string | undefined;
}

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
    (metrics.get(`${DELAY}_bucket`) ?? []).map(({ labels, value }) => {
      const bound = labels['le'] ?? '';
      return [bound === '+Inf' ? Infinity : Number(bound), value] as const;
    }),
  );

/** The upper bound of the bucket that holds a quantile of what came between two reads. */
function delayBetween(before: MetricSamples, now: MetricSamples): number | undefined {
  const earlier = bucketsOf(before);
  const buckets = [...bucketsOf(now)].toSorted(([a], [b]) => a - b);
  const grown = buckets.map(
    ([bound, value]) => [bound, growth(earlier.get(bound), value)] as const,
  );
  const total = grown.at(-1)?.[1] ?? 0;
  const found = grown.find(([, value]) => value >= total * QUANTILE);
  return total > 0 && found ? found[0] * 1_000 : undefined;
}

/** The figures of a process from its latest metrics, and from those before for rates. */
export function processFigures(now: MetricsRead, before: MetricsRead | undefined): ProcessFigures {
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
