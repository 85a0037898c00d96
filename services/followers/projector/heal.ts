import { createBackoff } from '../../../shared/lib/time/backoff.ts';
import { repeatUntilAborted } from '../../../shared/lib/concurrency/repeatUntilAborted.ts';
import type { ActiveProjectionStore, RebuildStore } from '../../../shared/ports/readModels.ts';
import type { EventLog, Position } from '../../../shared/ports/eventStore.ts';
import { rebuildReadModels, type RebuildProgress } from './rebuild.ts';
import type { ProjectorLogger } from './projection.ts';

const PAUSES = { firstMs: 500, longestMs: 10_000 };

export interface HealingOptions {
  log: Pick<EventLog, 'subscribe' | 'head'>;
  /**
   * Opens the generation that will replace the live one. Throws `rebuild_running` or
   * `store_unavailable`.
   */
  openRebuild: () => Promise<RebuildStore>;
  onProgress: (progress: RebuildProgress) => void;
  logger: ProjectorLogger;
  signal: AbortSignal;
}

/** One sentence on why read models are rebuilt after their checkpoint at this position was abandoned. */
export const healingReason = (refused: Position | undefined): string | undefined =>
  refused &&
  `The log was restored, and no longer holds the event at ${refused}, which they had applied.`;

/**
 * Rebuilds read models whose checkpoint was abandoned, until this rebuild or an operator's has made
 * them trustworthy, or the signal aborts. An interrupted rebuild resumes where it stopped. Repeated
 * failures are logged once and retried.
 */
export async function healReadModels(
  store: ActiveProjectionStore,
  { openRebuild, ...parts }: HealingOptions,
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
      logger.info(
        { refused },
        'The read models were rebuilt from the log and can be trusted again',
      );
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
