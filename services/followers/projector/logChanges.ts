import { isTurnlogError, type TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { Checkpoint } from '../../../shared/ports/eventStore.ts';
import type { Projection } from './projection.ts';

/**
 * A node that has fallen behind knows less of the log for a moment: only what is found twice in a
 * row is believed.
 */
const LOOKS = 2;
const LOOK_MS = 500;
/** How often a log that is not followed is looked at: the right one may have been put back. */
const LOOK_AGAIN_MS = 2_000;

/** The checkpoint of read models whose log was restored, on purpose: they are to be built anew. */
export interface RestoredLog {
  checkpoint: Checkpoint;
  /** One sentence on what was declared. */
  reason: string;
}

/** What a subscription that began after a checkpoint failed with, if the log was restored. */
export const restoredLog = (
  error: unknown,
  checkpoint: Checkpoint | undefined,
): RestoredLog | undefined =>
  checkpoint && isTurnlogError(error, 'log_restored')
    ? { checkpoint, reason: error.message }
    : undefined;

/** Deals with a log that does not hold the checkpoint of a projection. */
export function createLogChanges({
  onLogChanged,
  reportedReason: saidOfLog,
  logger,
}: Pick<Projection, 'onLogChanged' | 'reportedReason' | 'logger'>) {
  /** In a row: without one that fits between them. */
  let looks = 0;
  /** What was told last; nothing yet, where a projector before may have told something. */
  let told: { reason: string | undefined } | undefined;

  async function tell(reason: string | undefined): Promise<void> {
    if (told && told.reason === reason) return;
    const said = told ? told.reason : saidOfLog;
    if (reason !== undefined && reason !== said)
      logger.error({}, `The read models do not follow the log. ${reason}`);
    if (reason === undefined && said !== undefined)
      logger.info({}, 'The log is again the one that the read models were built from');
    await onLogChanged?.(reason);
    told = { reason };
  }

  return {
    /** The log holds the checkpoint. */
    async fits(): Promise<void> {
      looks = 0;
      await tell(undefined);
    },
    /** Reports the change once it is certain. Resolves with the pause before the next check. */
    async refused(error: TurnlogError): Promise<number> {
      looks += 1;
      if (looks >= LOOKS) await tell(error.message);
      return looks < LOOKS ? LOOK_MS : LOOK_AGAIN_MS;
    },
  };
}
