import { getHeapStatistics } from 'node:v8';
import { Counter, Histogram, Registry, Gauge } from 'prom-client';
import type { MetricsFormat, Metrics } from '../../shared/health/metrics.ts';
import { registeredResources, type Usage } from '../../shared/lib/concurrency/resources.ts';
import { createHealthGauges } from './healthGauges.ts';

/** Metrics of the bounded resources. The returned function brings them up to date. */
function createResourceGauges(registers: Registry[]): () => void {
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
function createProcessGauges(registers: Registry[]): () => void {
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

const STATUS_CLASSES = ['2xx', '3xx', '4xx', '5xx'];
/** A request that no route matched. Its method and path are the client's choice. */
const UNMATCHED = { method: 'other', path: 'unmatched' };
const OUTCOMES = ['success', 'failure', 'given_up'] as const;
const STEP_CAUSES = ['code', 'garbage_collection'] as const;
const RUN_OUTCOMES = ['completed', 'failed', 'interrupted'] as const;

const REQUEST_BUCKETS = [0.005, 0.025, 0.1, 0.25, 1, 2.5, 10, 30, 120];
const APPEND_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 1, 5];
const CALL_BUCKETS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];
const DELAY_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];

function createRequestMetrics(registers: Registry[]) {
  const requests = new Counter({
    name: 'turnlog_http_requests_total',
    help: 'Answered requests by route and class of the HTTP status',
    labelNames: ['method', 'route', 'status'],
    registers,
  });
  const durations = new Histogram({
    name: 'turnlog_http_request_duration_seconds',
    help: 'Time from the headers of a request to its answer',
    labelNames: ['method', 'route'],
    buckets: REQUEST_BUCKETS,
    registers,
  });
  const errors = new Counter({
    name: 'turnlog_http_errors_total',
    help: 'Failed requests by error code',
    labelNames: ['code'],
    registers,
  });
  return {
    expectRequests({ routes, errorCodes }) {
      for (const { method, path } of [...routes, UNMATCHED]) {
        const labels = { method: method.toUpperCase(), route: path };
        for (const status of STATUS_CLASSES) requests.inc({ ...labels, status }, 0);
        durations.zero(labels);
      }
      for (const code of errorCodes) errors.inc({ code }, 0);
    },
    observeRequest({ route = UNMATCHED, status, ...request }) {
      const labels = { method: route.method.toUpperCase(), route: route.path };
      requests.inc({ ...labels, status: `${Math.floor(status / 100)}xx` });
      durations.observe(labels, request.seconds);
      if (request.code !== undefined) errors.inc({ code: request.code });
    },
  } satisfies Partial<Metrics>;
}

function createCallMetrics(registers: Registry[]) {
  const appends = new Histogram({
    name: 'turnlog_append_duration_seconds',
    help: 'Time until an append to the event log is durable or rejected',
    labelNames: ['outcome'],
    buckets: APPEND_BUCKETS,
    registers,
  });
  const runs = new Counter({
    name: 'turnlog_runs_total',
    help: 'Ended turns by their outcome',
    labelNames: ['outcome'],
    registers,
  });
  const models = new Histogram({
    name: 'turnlog_model_call_duration_seconds',
    help: 'Time of a model call with its retries, by configured model',
    labelNames: ['model', 'outcome'],
    buckets: CALL_BUCKETS,
    registers,
  });
  const tools = new Histogram({
    name: 'turnlog_tool_call_duration_seconds',
    help: 'Time of a tool call, by built-in tool or configured server',
    labelNames: ['tool', 'outcome'],
    buckets: CALL_BUCKETS,
    registers,
  });
  for (const outcome of OUTCOMES) appends.zero({ outcome });
  for (const outcome of RUN_OUTCOMES) runs.inc({ outcome }, 0);
  return {
    observeAppend: (outcome, seconds) => appends.observe({ outcome }, seconds),
    countRun: (outcome) => runs.inc({ outcome }),
    observeModelCall: (model, outcome, seconds) => models.observe({ model, outcome }, seconds),
    observeToolCall: (tool, outcome, seconds) => tools.observe({ tool, outcome }, seconds),
  } satisfies Partial<Metrics>;
}

function createLoopMetrics(registers: Registry[]) {
  const delays = new Histogram({
    name: 'turnlog_event_loop_delay_seconds',
    help: 'How much later than due a timer ran, 50 times a second',
    buckets: DELAY_BUCKETS,
    registers,
  });
  const steps = new Counter({
    name: 'turnlog_event_loop_long_steps_total',
    help: 'Steps of the event loop that used the CPU for more than 50 ms; the log names them',
    labelNames: ['cause'],
    registers,
  });
  for (const cause of STEP_CAUSES) steps.inc({ cause }, 0);
  return {
    observeLoopDelay: (seconds) => delays.observe(seconds),
    countLongStep: (cause) => steps.inc({ cause }),
  } satisfies Partial<Metrics>;
}

/**
 * In OpenMetrics the name of a counter lacks the suffix of its sample. prom-client can write this
 * as well, but changes its metrics for good when it does.
 */
const toOpenMetrics = (text: string): string =>
  `${text.replaceAll(/^# (HELP|TYPE) (\S+)_total /gm, '# $1 $2 ').replaceAll('\n\n', '\n')}# EOF\n`;

/** The metrics of this process, with prom-client. */
export function createMetrics(): Metrics {
  const registry = new Registry();
  const registers = [registry];
  const requests = createRequestMetrics(registers);
  const calls = createCallMetrics(registers);
  const loop = createLoopMetrics(registers);
  const collectResources = createResourceGauges(registers);
  const collectHealth = createHealthGauges(registers);
  const collectProcess = createProcessGauges(registers);
  return {
    ...requests,
    ...calls,
    ...loop,
    async render(format: MetricsFormat, health) {
      collectResources();
      collectHealth(health);
      collectProcess();
      const text = await registry.metrics();
      return format === 'openmetrics' ? toOpenMetrics(text) : text;
    },
  };
}
