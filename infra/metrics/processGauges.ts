import { getHeapStatistics } from 'node:v8';
import { Counter, Gauge, type Registry } from 'prom-client';
import { registeredResources, type Usage } from '../../shared/lib/concurrency/resources.ts';

/** Metrics of the bounded resources. The returned function brings them up to date. */
export function createResourceGauges(registers: Registry[]): () => void {
  const gauge = (name: string, help: string) =>
    new Gauge({ name: `turnlog_resource_${name}`, help, labelNames: ['resource'], registers });
  const counts = {
    limit: gauge('limit', 'The most permits, connections or entries of a bounded resource'),
    used: gauge('used', 'Permits, connections or entries of a bounded resource in use'),
  };
  const bytes = {
    limit: gauge('limit_bytes', 'The most bytes of a bounded resource'),
    used: gauge('used_bytes', 'Bytes of a bounded resource in use'),
  };
  const waiting = gauge('waiting', 'Requests that wait for a bounded resource');
  const rejections = new Counter({
    name: 'turnlog_resource_rejections_total',
    help: 'Requests rejected because an account or the process had reached its limit',
    labelNames: ['resource', 'limit'],
    registers,
  });
  const all = [counts.limit, counts.used, bytes.limit, bytes.used, waiting, rejections];

  function add(gauges: typeof counts, resource: string, usage: Usage | undefined): void {
    if (usage === undefined || usage.limit === Infinity) return;
    gauges.limit.inc({ resource }, usage.limit);
    gauges.used.inc({ resource }, usage.used);
  }

  return () => {
    for (const metric of all) metric.reset();
    for (const [resource, { usage }] of registeredResources()) {
      const { count, bytes: size, waiting: queued, rejected } = usage();
      add(counts, resource, count);
      add(bytes, resource, size);
      if (queued !== undefined) waiting.inc({ resource }, queued);
      for (const [limit, value] of Object.entries(rejected ?? {}))
        rejections.inc({ resource, limit }, value);
    }
  };
}

const MICROSECONDS = 1e6;

/**
 * Memory and CPU time of the process, under the names that Prometheus clients share. The returned
 * function brings them up to date.
 */
export function createProcessGauges(registers: Registry[]): () => void {
  const gauge = (name: string, help: string) => new Gauge({ name, help, registers });
  gauge('process_start_time_seconds', 'Start of the process, in seconds since 1970').set(
    Date.now() / 1_000 - process.uptime(),
  );
  const rss = gauge('process_resident_memory_bytes', 'Resident memory');
  const heapUsed = gauge('nodejs_heap_size_used_bytes', 'Heap in use by the main thread');
  const heapLimit = gauge('nodejs_heap_size_limit_bytes', 'The limit of that heap');
  const external = gauge('nodejs_external_memory_bytes', 'Memory of buffers outside the heap');
  const cpu = new Counter({
    name: 'process_cpu_seconds_total',
    help: 'CPU time of all threads',
    registers,
  });
  return () => {
    const memory = process.memoryUsage();
    rss.set(memory.rss);
    heapUsed.set(memory.heapUsed);
    heapLimit.set(getHeapStatistics().heap_size_limit);
    external.set(memory.external);
    const { user, system } = process.cpuUsage();
    cpu.reset();
    cpu.inc((user + system) / MICROSECONDS);
  };
}
