import { TurnlogError } from '../../shared/errors.ts';
import type { EventLog, Position } from '../../shared/ports/eventStore.ts';
import type { Checkpoint } from '../../shared/ports/publisher.ts';

/** The id of the first event of a log, which tells it from every other log; undefined while it is empty. */
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

/**
 * Where to go on: after the checkpoint, or after `start` when there is none. Errors: `invalid_request` when the checkpoint
 * is of another log, whose positions mean nothing here: going on would leave out events without a word.
 */
export function resumeAfter(checkpoint: Checkpoint | undefined, logId: string | undefined, start: Position | undefined): Position | undefined {
  if (!checkpoint) return start;
  if (checkpoint.log_id === logId) return checkpoint.position;
  throw new TurnlogError('invalid_request', 'The checkpoint in Kafka is of another event log. Set KAFKA_TRANSACTIONAL_ID, KAFKA_CHECKPOINT_TOPIC and the names of the topics to new ones for this log.');
}
