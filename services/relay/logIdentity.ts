import { isTurnlogError, TurnlogError } from '../../shared/errors.ts';
import { requirePosition } from '../../shared/eventlog/positions.ts';
import type { EventBatch, EventLog, Position } from '../../shared/ports/eventStore.ts';
import type { Checkpoint } from '../../shared/ports/publisher.ts';

/**
 * The id of the first event of a log, which tells it from every other log; undefined while it is
 * empty.
 */
export async function logIdOf(log: Pick<EventLog, 'subscribe'>): Promise<string | undefined> {
  const read = new AbortController();
  try {
    for await (const { events, caughtUp } of log.subscribe({ batchSize: 1, signal: read.signal })) {
      if (events[0]) return events[0].id;
      if (caughtUp) return undefined;
    }
    return undefined;
  } finally {
    read.abort();
  }
}

const OTHER_NAMES =
  'Set KAFKA_TRANSACTIONAL_ID, KAFKA_CHECKPOINT_TOPIC and the names of the topics to new ones for this log.';

/**
 * Where to go on: after the checkpoint, or after `start` when there is none.
 * Errors: `configuration_invalid` when the checkpoint is of another log, whose positions mean
 * nothing here: going on would leave out events without a word.
 */
export function resumeAfter(
  checkpoint: Checkpoint | undefined,
  logId: string | undefined,
  start: Position | undefined,
): Position | undefined {
  if (!checkpoint) return start;
  if (checkpoint.log_id === logId) return checkpoint.position;
  throw new TurnlogError(
    'configuration_invalid',
    `The checkpoint in Kafka is of another event log. ${OTHER_NAMES}`,
  );
}

interface Resumed {
  log: Pick<EventLog, 'subscribe'>;
  /** Where a checkpoint was found, else what names the position. */
  checkpoint: Checkpoint | undefined;
  after: Position | undefined;
  batchSize: number;
  signal: AbortSignal;
}

/**
 * The batches after a position that somebody has kept. Errors: `position_invalid` when it is no
 * position of the log, which says where the position is from and what to do; going on would leave
 * out events without a word.
 */
export async function* subscribeAfter(resumed: Resumed): AsyncGenerator<EventBatch> {
  const { log, checkpoint, after, batchSize, signal } = resumed;
  try {
    requirePosition(after);
    yield* log.subscribe({ after, batchSize, signal });
  } catch (error) {
    if (!isTurnlogError(error, 'position_invalid')) throw error;
    const origin = checkpoint
      ? `The checkpoint in Kafka can't be gone on from. ${OTHER_NAMES}`
      : "The position to begin after (KAFKA_START_AFTER, --from) can't be begun after.";
    throw new TurnlogError('position_invalid', `${origin} ${error.message}`, { cause: error });
  }
}

const STAYS =
  'This relay publishes nothing until it is restarted, also when the log has grown past that position.';

/**
 * The same for a relay, which stays with a refusal: what others write after it up to the position
 * would be left out if the relay went on once the log has grown past it. A log that only lagged
 * can't be told from that.
 */
export function createSubscribeAfter(): typeof subscribeAfter {
  let refused: { after: Position | undefined; error: TurnlogError } | undefined;

  return async function* subscribeOrStay(resumed) {
    if (refused && refused.after === resumed.after) throw refused.error;
    let { after } = resumed;
    try {
      for await (const batch of subscribeAfter(resumed)) {
        yield batch;
        after = batch.position ?? after;
      }
    } catch (error) {
      if (!isTurnlogError(error, 'position_invalid')) throw error;
      refused = {
        after,
        error: new TurnlogError(error.code, `${error.message} ${STAYS}`, { cause: error }),
      };
      throw refused.error;
    }
  };
}
