import { isTurnlogError, TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import {
  verifyCheckpoint,
  type IdentifiableLog,
} from '../../../shared/eventlog/identity/logIdentity.ts';
import type { Checkpoint, EventLog } from '../../../shared/ports/eventStore.ts';

const OTHER_NAMES =
  'A different log needs new names: KAFKA_TRANSACTIONAL_ID, KAFKA_CHECKPOINT_TOPIC and the topics.';

/** Names the relay's option in an error about the start position or the checkpoint. */
function explainLogError(error: unknown): unknown {
  if (isTurnlogError(error, 'log_changed'))
    return new TurnlogError(error.code, `${error.message} ${OTHER_NAMES}`, { cause: error });
  if (!isTurnlogError(error, 'position_invalid')) return error;
  return new TurnlogError(
    error.code,
    `The start position (KAFKA_START_AFTER, --from) can't be used. ${error.message}`,
    { cause: error },
  );
}

/** Returns true when the log was declared to be a restored copy of the checkpoint's log. */
export async function wasRestored(
  log: IdentifiableLog,
  checkpoint: Checkpoint | undefined,
): Promise<boolean> {
  if (!checkpoint) return false;
  try {
    await verifyCheckpoint(log, checkpoint);
    return false;
  } catch (error) {
    if (isTurnlogError(error, 'log_restored')) return true;
    throw explainLogError(error);
  }
}

/** The log, with errors of its subscriptions that name the options of the relay. */
export const withRelayErrors = (log: Pick<EventLog, 'subscribe'>): Pick<EventLog, 'subscribe'> => ({
  async *subscribe(options) {
    try {
      yield* log.subscribe(options);
    } catch (error) {
      throw explainLogError(error);
    }
  },
});
