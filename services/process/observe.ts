import type { Metrics } from '../../shared/health/metrics.ts';
import { startWatchdog, type LongStep } from '../../shared/lib/concurrency/eventLoopWatchdog.ts';
import type { Config } from '../../shared/lib/config/config.ts';
import type { Logger } from '../../shared/lib/logger.ts';
import { LIMITS } from '../../shared/limits.ts';
import { createMetricsApp } from '../api/app.ts';
import type { ProcessContext } from '../api/context.ts';
import { startServer, type ApiServer } from '../api/http/connection/server.ts';
import { throttledLog } from '../api/http/throttledLog.ts';

/** Logs long steps by task, throttled: clients may cause them at any rate. */
function createStepLog(logger: Pick<Logger, 'warn'>): (step: LongStep) => void {
  const logs = new Map<string, (step: LongStep) => void>();
  return (step) => {
    let log = logs.get(step.task);
    if (!log) {
      log = throttledLog((steps, latest: LongStep) =>
        logger.warn({ steps, ...latest }, 'a step of the event loop took long; this is the latest'),
      );
      logs.set(step.task, log);
    }
    log(step);
  };
}

/** Watches the event loop of the process, which every request shares. */
export function watchEventLoop(metrics: Metrics, logger: Pick<Logger, 'warn'>): Disposable {
  const logStep = createStepLog(logger);
  return startWatchdog({
    onDelay: (ms) => metrics.observeLoopDelay(ms / 1_000),
    onLongStep(step) {
      metrics.countLongStep(step.gc_ms > step.cpu_ms / 2 ? 'garbage_collection' : 'code');
      logStep(step);
    },
  });
}

/** Serves the metrics on their own port, if one is set. */
export async function serveMetrics(
  context: ProcessContext,
  { HOST, METRICS_HOST, METRICS_PORT }: Config,
): Promise<ApiServer | undefined> {
  if (METRICS_PORT === undefined) return undefined;
  const { ids, logger } = context;
  const server = await startServer(createMetricsApp(context), {
    portOption: 'METRICS_PORT',
    host: METRICS_HOST ?? HOST,
    port: METRICS_PORT,
    maxConnections: LIMITS.metrics.connections,
    ids,
    logger,
  });
  logger.info({ url: `${server.url}/metrics` }, 'the metrics are served');
  return server;
}
