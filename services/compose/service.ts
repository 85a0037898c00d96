import { createMetrics } from '../../infra/metrics/metrics.ts';
import { createConsoleBuild } from '../../infra/vite/consoleBuild.ts';
import type { Config } from '../../shared/lib/config/config.ts';
import { clockProblem } from '../../shared/ports/clock.ts';
import type { Logger } from '../../shared/lib/logger.ts';
import type { ServiceName } from '../process/serviceNames.ts';
import { startServing, type RunningService } from '../process/start.ts';
import type { ProcessPart, ProcessParts } from '../process/processParts.ts';
import { openEmbedded } from './embedded/embedded.ts';
import { openMemoryLedger, type Opening, type OpenedParts } from './opening.ts';
import { locateStorage } from './logLocation.ts';
import { openRelayAlone } from './features/relay.ts';
import { openReplica } from './replica/replica.ts';
import { systemClock, systemIds } from './system.ts';

function openParts(opening: Opening): Promise<OpenedParts> {
  const place = locateStorage(opening.config);
  if (opening.services.every((name) => name === 'relay')) return openRelayAlone(opening, place);
  return place.kind === 'embedded' ? openEmbedded(opening, place) : openReplica(opening, place);
}

/** Opens the parts that the configuration selects; if one fails, those opened before are closed. */
export async function openTurnlog(
  config: Config,
  logger: Logger,
  services: readonly ServiceName[],
  consoleSources?: string,
): Promise<ProcessParts> {
  await using opened = new AsyncDisposableStack();
  const memory = openMemoryLedger(config);
  const metrics = createMetrics();
  const parts = await openParts({ config, logger, metrics, services, memory, opened });
  const console =
    config.CONSOLE === 'on' && parts.api
      ? opened.use(createConsoleBuild({ logger, sources: consoleSources }))
      : undefined;
  const resources = opened.move();
  const clock: ProcessPart = { trouble: () => clockProblem(systemClock) };
  return {
    ...parts,
    console,
    memory,
    metrics,
    parts: [clock, ...parts.parts],
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

interface ServiceOptions {
  services: readonly ServiceName[];
  /** Cancels the start. */
  signal: AbortSignal;
  /** The folder of the console's sources; by default that of the project. */
  consoleSources?: string;
}

/** Starts the services of one process. */
export async function startService(
  config: Config,
  logger: Logger,
  { services, signal, consoleSources }: ServiceOptions,
): Promise<RunningService> {
  const turnlog = await openTurnlog(config, logger, services, consoleSources);
  return startServing(turnlog, { config, logger, ids: systemIds, services, signal });
}
