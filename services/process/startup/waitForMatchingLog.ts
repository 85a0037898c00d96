import { isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { verifyCheckpoint } from '../../../shared/eventlog/identity/logIdentity.ts';
import type { Logger } from '../../../shared/lib/logger.ts';
import { sleep } from '../../../shared/lib/time/sleep.ts';
import type { Checkpoint, EventStore } from '../../../shared/ports/eventStore.ts';
import { retryUntilStoreAvailable } from './retryUntilStoreAvailable.ts';

const POLL_MS = 1_000;

interface MatchingLogOptions {
  store: EventStore;
  /** The checkpoint of the read models, which another process may keep up to date. */
  checkpoint: () => Promise<Checkpoint | undefined>;
  logger: Logger;
  /** Called with one sentence on why the read models belong to another log; undefined once they match. */
  onLogChanged: (reason: string | undefined) => void;
}

/**
 * Resolves once the log is the one that the read models were built from. Events written to another
 * log would never be shown.
 */
export async function waitForMatchingLog(
  { store, checkpoint, logger, onLogChanged }: MatchingLogOptions,
  signal: AbortSignal,
): Promise<void> {
  async function mismatchReason(): Promise<string | undefined> {
    const current = await checkpoint();
    try {
      if (current) await verifyCheckpoint(store, current);
      return undefined;
    } catch (error) {
      if (isTurnlogError(error, 'log_changed') || isTurnlogError(error, 'log_restored'))
        return error.message;
      throw error;
    }
  }

  let loggedReason: string | undefined;
  for (;;) {
    const reason = await retryUntilStoreAvailable(mismatchReason, logger, signal);
    onLogChanged(reason);
    if (reason === undefined) return;
    if (reason !== loggedReason) logger.error({}, `the start waits: ${reason}`);
    loggedReason = reason;
    await sleep(POLL_MS, signal);
  }
}
