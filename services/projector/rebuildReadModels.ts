import type { EventLog } from '../../shared/ports/eventStore.ts';
import type { ProjectionStore } from '../../shared/ports/readModels.ts';
import { runProjection, type ProjectorLogger } from './runProjection.ts';

export interface RebuildProgress {
  /** Applied by this call; what an interrupted rebuild had done before is not counted. */
  events: number;
  events_per_second: number;
  /** Of the whole log, an estimate. */
  percent: number;
  /** Streams parked so far. */
  parked: number;
}

interface Rebuild {
  log: Pick<EventLog, 'subscribe' | 'head'>;
  /** Where the next generation is built; `publish` makes it the current one and closes it. */
  store: ProjectionStore & { publish(): Promise<void> };
  signal: AbortSignal;
  onProgress: (progress: RebuildProgress) => void;
  logger: ProjectorLogger;
}

/**
 * Builds the read models anew from the log, beside a server or without one, and publishes them when they have caught up.
 * Resolves true then, false when the signal aborted first: the next rebuild goes on where this one was.
 */
export async function rebuildReadModels({ log, store, signal, onProgress, logger }: Rebuild): Promise<boolean> {
  const complete = new AbortController();
  const begun = performance.now();
  let parked = 0;
  await runProjection({
    log,
    store,
    logger,
    signal: AbortSignal.any([signal, complete.signal]),
    onProgress(batch) {
      parked += batch.parked.length;
      const { events, percent } = batch;
      onProgress({ events, percent, parked, events_per_second: Math.round((1000 * events) / Math.max(1, performance.now() - begun)) });
      if (batch.caughtUp) complete.abort();
    },
  });
  if (complete.signal.aborted) await store.publish();
  else await store.close();
  return complete.signal.aborted;
}
