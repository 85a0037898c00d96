import { isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { verifyCheckpoint } from '../../../shared/eventlog/identity/logIdentity.ts';
import type { Logger } from '../../../shared/lib/logger.ts';
import { sleep } from '../../../shared/lib/time/sleep.ts';
import type { Checkpoint, EventStore } from '../../../shared/ports/eventStore.ts';
import { retryUntilStoreAvailable } from './retryUntilStoreAvailable.ts';

const LOOK_MS = 1_000;

interface MatchingLogOptions {
  store: EventStore;
  /** Of the read models, which another process may keep up to date. */
  checkpoint: () => Promise<Checkpoint | undefined>;
  logger: Logger;
  /** Told one sentence on why they are not of this log; undefined once they are. */
  onLogChanged: (reason: string | undefined) => void;
}

/**
 * Resolves once the log is the one that the read models were built from: what is written to another
 * one would never be shown. Errors: the signal's reason.
 */
export async function waitForMatchingLog(
  { store, checkpoint, logger, onLogChanged }: MatchingLogOptions,
  signal: AbortSignal,
): Promise<void> {
  async function misfit(): Promise<string | undefined> {
    const reached = await checkpoint();
    try {
      if (reached) await verifyCheckpoint(store, reached);
      return undefined;
    } catch (error) {
      if (isTurnlogError(error, 'log_changed') || isTurnlogError(error, 'log_restored'))
        return error.message;
      throw error;
    }
  }

  let told: string | undefined;
  for (;;) {
    const reason = await retryUntilStoreAvailable(misfit, logger, signal);
    onLogChanged(reason);
    if (reason === undefined) return;
    if (reason !== told) logger.error({}, `The service waits with its start. ${reason}`);
    told = reason;
    await sleep(LOOK_MS, signal);
  }
}
