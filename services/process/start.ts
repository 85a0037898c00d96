import { parseFoldedReads } from '../../shared/audit/foldedReadKinds.ts';
import { createRunsInFlight } from '../../shared/runs/queueing/runsInFlight.ts';
import type { Config } from '../../shared/lib/config/config.ts';
import type { Logger } from '../../shared/lib/logger.ts';
import { sleep } from '../../shared/lib/time/sleep.ts';
import type { Ids } from '../../shared/ports/clock.ts';
import { createApp, createHealthApp } from '../api/app.ts';
import type { Availability, ProcessContext } from '../api/context.ts';
import { isLoopbackHost } from '../api/console/signIn.ts';
import { createSignInCode } from '../api/console/signInCode.ts';
import { startServer, type ApiServer } from '../api/http/connection/server.ts';
import { issueBootstrapKey } from './startup/bootstrap.ts';
import { checkHealth, shareHealth } from './health/health.ts';
import { connectionLimit } from './connectionLimit.ts';
import { retryUntilStoreAvailable } from './startup/retryUntilStoreAvailable.ts';
import { packageVersion } from './help.ts';
import { serveMetrics, watchEventLoop } from './observe.ts';
import type { ServiceName } from './serviceNames.ts';
import { stopGracefully } from './stop.ts';
import type { ProcessParts } from './processParts.ts';

export interface RunningService {
  /** The address that it listens on. */
  url: string;
  services: readonly ServiceName[];
  dataFolder: string | undefined;
  /** The first API key, if this start issued it. */
  firstKey: string | undefined;
  /** Ids of the configured models; empty if this process does not serve the API. */
  models: string[];
  /** A link that signs in to the console once; undefined if there is none. */
  consoleLink: string | undefined;
  stop(): Promise<void>;
}

interface StartOptions {
  config: Config;
  logger: Logger;
  ids: Ids;
  services: readonly ServiceName[];
  /** Cancels the start. */
  signal: AbortSignal;
}

/** Prepares the parts. Resolves with the first key, if this start issued it. */
async function prepare(
  { parts, api }: ProcessParts,
  start: StartOptions,
): Promise<string | undefined> {
  const { config, logger, signal } = start;
  for (const part of parts) await part.prepare?.(signal);
  if (!api) return undefined;
  const issueFirst = () => issueBootstrapKey(api, config.BOOTSTRAP_API_KEY, signal);
  const firstKey = await retryUntilStoreAvailable(issueFirst, logger, signal);
  for (const part of parts) await part.settle?.();
  return firstKey;
}

async function closeServer(server: ApiServer): Promise<void> {
  const closed = server.close();
  server.destroyConnections();
  await closed;
}

/** A link for browsers on this machine; undefined where the service listens on another address. */
const signInLink = (url: string, code: string): string | undefined =>
  isLoopbackHost(new URL(url).host) ? `${url}/console/#code=${code}` : undefined;

/**
 * Serves the parts of a process, and closes them on stop or when the start fails. It listens at once
 * and answers `store_unavailable` until every part is prepared; then it resolves.
 */
export async function startServing(
  turnlog: ProcessParts,
  start: StartOptions,
): Promise<RunningService> {
  const { config, logger, ids, services } = start;
  const { api, dataFolder, metrics, parts } = turnlog;
  await using opened = new AsyncDisposableStack();
  opened.use(turnlog);
  opened.use(watchEventLoop(metrics, logger));
  let availability: Availability = 'starting';
  const stopping = new AbortController();
  const process: ProcessContext = {
    ids,
    logger,
    availability: () => availability,
    stopping: stopping.signal,
    corsOrigins: config.CORS_ORIGINS,
    memory: turnlog.memory,
    metrics,
    version: packageVersion(),
    hasMetricsPort: config.METRICS_PORT !== undefined,
    health: shareHealth(() => checkHealth(turnlog, availability)),
  };
  const signInCode = createSignInCode();
  const app = api
    ? createApp({
        ...api,
        ...process,
        logPublic: config.LOG_PUBLIC,
        auditedReads: parseFoldedReads(config.AUDIT_READS),
        eventSource: config.KAFKA_EVENT_SOURCE,
        console: turnlog.console && { ...turnlog.console, signInCode },
      })
    : createHealthApp(process);
  const server = await startServer(app, {
    portOption: 'PORT',
    host: config.HOST,
    port: config.PORT,
    maxConnections: connectionLimit(config.MAX_CONNECTIONS, logger),
    ids,
    logger,
  });
  logger.info({ url: server.url }, 'listening: requests are answered 503 until the service is up');
  opened.defer(() => closeServer(server));
  const scraped = await serveMetrics(process, config);
  if (scraped) opened.defer(() => closeServer(scraped));
  const upkeep = parts.flatMap((part) => part.upkeep?.() ?? []);
  const endUpkeep = async (): Promise<void> => {
    await Promise.all(upkeep.map((work) => work[Symbol.asyncDispose]()));
  };
  opened.defer(endUpkeep);

  const firstKey = await prepare(turnlog, start);
  availability = 'up';
  logger.info({ url: server.url, services, data_folder: dataFolder }, 'the service is up');
  turnlog.console?.start();
  const running = opened.move();
  return {
    url: server.url,
    services,
    dataFolder,
    firstKey,
    consoleLink: turnlog.console && signInLink(server.url, signInCode.issue()),
    models: api?.catalogue.models.list().map(({ id }) => id) ?? [],
    async stop() {
      if (api && config.DRAIN_MS > 0) {
        availability = 'draining';
        logger.info({ drain_ms: config.DRAIN_MS }, 'draining: requests are still served');
        await sleep(config.DRAIN_MS);
      }
      availability = 'stopping';
      stopping.abort();
      // Don't wait here: a sweep may be waiting for an unavailable store.
      const ended = endUpkeep();
      const inFlight = api?.runState.runsInFlight ?? createRunsInFlight();
      await stopGracefully({ server, inFlight, logger, graceMs: config.SHUTDOWN_GRACE_MS });
      await ended;
      await running.disposeAsync();
    },
  };
}
