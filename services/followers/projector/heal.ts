import { createBackoff } from '../../../shared/lib/time/backoff.ts';
import { repeatUntilAborted } from '../../../shared/lib/concurrency/repeatUntilAborted.ts';
import type { ActiveProjectionStore, RebuildStore } from '../../../shared/ports/readModels.ts';
import type { EventLog, Position } from '../../../shared/ports/eventStore.ts';
import { rebuildReadModels, type RebuildProgress } from './rebuild.ts';
import type { ProjectorLogger } from './projection.ts';

const PAUSES = { firstMs: 500, longestMs: 10_000 };

export interface Healing {
  log: Pick<EventLog, 'subscribe' | 'head'>;
  /**
   * Opens the generation that is to replace the live one. Errors: `rebuild_running`,
   * `store_unavailable`.
   */
  openRebuild: () => Promise<RebuildStore>;
  onProgress: (progress: RebuildProgress) => void;
  logger: ProjectorLogger;
  signal: AbortSignal;
}

/** Why read models are rebuilt whose checkpoint at this position was given up. */
export const healingReason = (refused: Position | undefined): string | undefined =>
  refused && `The log was restored, and no longer holds the event at ${refused} that they showed.`;

/**
 * Rebuilds the read models whose checkpoint was given up, until they can be trusted, by this
 * rebuild or by an operator's, or the signal aborts. An interrupted one goes on where it was. What
 * keeps it from going on is logged once, and tried again.
 */
export async function healReadModels(
  store: ActiveProjectionStore,
  { openRebuild, ...parts }: Healing,
): Promise<void> {
  const { signal, logger } = parts;
  let logged: string | undefined;
  const pauses = createBackoff(PAUSES);
  await repeatUntilAborted({
    async run() {
      const refused = await store.refused();
      if (refused === undefined) return 'stop';
      const built = await openRebuild();
      const onLogChanged = store.noteLogChanged;
      if (!(await rebuildReadModels({ ...parts, store: built, onLogChanged })))
        return pauses.next();
      logger.info({ refused }, 'The read models are healed: they were built anew from the log');
      return 'stop';
    },
    onFailure(error) {
      if (signal.aborted) return 'stop';
      if (logged !== String(error))
        logger.warn({ err: error }, 'The read models could not be rebuilt; retrying');
      logged = String(error);
      return pauses.next();
    },
    signal,
  });
}
