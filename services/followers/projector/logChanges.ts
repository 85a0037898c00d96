import { isTurnlogError, type TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { Checkpoint } from '../../../shared/ports/eventStore.ts';
import type { Projection } from './projection.ts';

/**
 * A node that lags behind may lack part of the log for a moment: only a finding made twice in a row
 * counts.
 */
const REQUIRED_CHECKS = 2;
const CHECK_MS = 500;
/** How often a log that is not followed is checked: the right one may have been put back. */
const RECHECK_MS = 2_000;

/** The checkpoint of read models whose log was declared restored: they have to be rebuilt. */
export interface RestoredLog {
  checkpoint: Checkpoint;
  /** One sentence on the declaration. */
  reason: string;
}

/** The restored log, when that is why a subscription from this checkpoint failed. */
export const findRestoredLog = (
  error: unknown,
  checkpoint: Checkpoint | undefined,
): RestoredLog | undefined =>
  checkpoint && isTurnlogError(error, 'log_restored')
    ? { checkpoint, reason: error.message }
    : undefined;

/** Reports a log that does not hold the checkpoint of a projection. */
export function createLogChanges({
  onLogChanged,
  reportedReason,
  logger,
}: Pick<Projection, 'onLogChanged' | 'reportedReason' | 'logger'>) {
  /** Consecutive checks that failed. */
  let mismatches = 0;
  /** The last report of this projection; undefined before the first, when `reportedReason` counts. */
  let reported: { reason: string | undefined } | undefined;

  async function report(reason: string | undefined): Promise<void> {
    if (reported && reported.reason === reason) return;
    const previous = reported ? reported.reason : reportedReason;
    if (reason !== undefined && reason !== previous)
      logger.error({}, `The read models do not follow the log. ${reason}`);
    if (reason === undefined && previous !== undefined)
      logger.info({}, 'The log is again the one that the read models were built from');
    await onLogChanged?.(reason);
    reported = { reason };
  }

  return {
    /** The log holds the checkpoint. */
    async onAccepted(): Promise<void> {
      mismatches = 0;
      await report(undefined);
    },
    /** Reports the change once it is certain. Resolves with the pause before the next check, in ms. */
    async onRefused(error: TurnlogError): Promise<number> {
      mismatches += 1;
      if (mismatches >= REQUIRED_CHECKS) await report(error.message);
      return mismatches < REQUIRED_CHECKS ? CHECK_MS : RECHECK_MS;
    },
  };
}
