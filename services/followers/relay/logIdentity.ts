import { isTurnlogError, TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { requireFit, type Identified } from '../../../shared/eventlog/identity/logIdentity.ts';
import type {
  Checkpoint,
  EventBatch,
  EventLog,
  Position,
} from '../../../shared/ports/eventStore.ts';

const OTHER_NAMES =
  'A log of its own needs new names: KAFKA_TRANSACTIONAL_ID, KAFKA_CHECKPOINT_TOPIC and the topics.';

/** The relay's words for a checkpoint, or a start, that the log does not have. */
function explained(error: unknown): unknown {
  if (isTurnlogError(error, 'log_changed'))
    return new TurnlogError(error.code, `${error.message} ${OTHER_NAMES}`, { cause: error });
  if (!isTurnlogError(error, 'position_invalid')) return error;
  return new TurnlogError(
    error.code,
    `The position to begin after (KAFKA_START_AFTER, --from) can't be begun after. ${error.message}`,
    { cause: error },
  );
}

/**
 * True when the log of the checkpoint was restored, and this one was declared to stand for it.
 * Errors: `log_changed` when it is another log; `store_unavailable`.
 */
export async function wasRestored(
  log: Identified,
  checkpoint: Checkpoint | undefined,
): Promise<boolean> {
  if (!checkpoint) return false;
  try {
    await requireFit(log, checkpoint);
    return false;
  } catch (error) {
    if (isTurnlogError(error, 'log_restored')) return true;
    throw explained(error);
  }
}

interface From {
  log: Pick<EventLog, 'subscribe'>;
  /** A checkpoint, or the position that an operator names; the first event without either. */
  after: Checkpoint | Position | undefined;
  batchSize: number;
  signal: AbortSignal;
}

/**
 * The batches after a checkpoint, or a position that somebody named. Errors: those of
 * EventLog.subscribe, in words that say whose checkpoint it is and what to do.
 */
export async function* subscribeAfter({
  log,
  after,
  batchSize,
  signal,
}: From): AsyncGenerator<EventBatch> {
  try {
    yield* log.subscribe({ after, batchSize, signal });
  } catch (error) {
    throw explained(error);
  }
}
