import { openPostgresProjectionStore } from '../../../../infra/postgres/readModels/projectionStore.ts';
import { openPostgresRebuildStore } from '../../../../infra/postgres/readModels/rebuildStore.ts';
import { VERSION } from '../../../../infra/postgres/readModels/schema.ts';
import { projectWhenActive } from '../../../../services/followers/projector/projectWhenActive.ts';
import type { ProjectorState } from '../../../../services/followers/projector/serveAsActive.ts';
import type {
  Projection,
  ProjectorLogger,
} from '../../../../services/followers/projector/projection.ts';
import type { EventLog } from '../../../../shared/ports/eventStore.ts';
import type { ActiveProjectionStore } from '../../../../shared/ports/readModels.ts';

const QUIET: ProjectorLogger = {
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

interface Options {
  log: Pick<EventLog, 'subscribe' | 'head'>;
  databaseUrl: string;
  onState?: (state: ProjectorState) => void;
  onProgress?: Projection['onProgress'];
  onLogChanged?: Projection['onLogChanged'];
  logger?: ProjectorLogger;
}

/** A projector that runs in the background; `stop` resolves when it has ended. */
export function startPostgresProjector({
  log,
  databaseUrl,
  onState = () => undefined,
  onProgress = () => undefined,
  onLogChanged,
  logger = QUIET,
}: Options) {
  const stopping = new AbortController();
  const running = projectWhenActive({
    log,
    logger,
    signal: stopping.signal,
    onState,
    onProgress,
    onLogChanged,
    report: () => undefined,
    onHealingProgress: () => undefined,
    onEnd: () => undefined,
    currentLag: () => undefined,
    openRebuild: () => openPostgresRebuildStore({ databaseUrl }),
    acquireLeadership: (signal) => openPostgresProjectionStore({ databaseUrl, signal }),
  });
  return {
    async stop(): Promise<void> {
      stopping.abort();
      await running;
    },
  };
}

/** The store of the active projector. Errors: a plain Error where that is not to be had. */
export async function openActive(
  databaseUrl: string,
  version = VERSION,
  clearAfterMs?: number,
): Promise<ActiveProjectionStore> {
  const store = await openPostgresProjectionStore({
    databaseUrl,
    version,
    signal: new AbortController().signal,
    ...(clearAfterMs !== undefined && { clearAfterMs }),
  });
  if (!store) throw new Error('the projection store was not opened');
  return store;
}
