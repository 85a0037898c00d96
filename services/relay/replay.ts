import { TurnlogError } from '../../shared/errors.ts';
import type { EventLog, Position } from '../../shared/ports/eventStore.ts';
import type { Publisher } from '../../shared/ports/publisher.ts';
import type { Channel } from '../../shared/publicEvents/schema.ts';
import { percentOf } from '../../shared/projections/progress.ts';
import { logIdOf, resumeAfter } from './logIdentity.ts';
import { toPublicEvents } from './toPublicEvents.ts';

const BATCH_SIZE = 1000;

export interface ReplayProgress {
  /** Messages published by this call. */
  published: number;
  /** 0 to 100, of the log as it was when the replay began. */
  percent: number;
  position: Position | undefined;
}

export interface Replay {
  log: Pick<EventLog, 'subscribe' | 'head'>;
  /** Publishes to topics that nothing else publishes to. */
  publisher: Publisher;
  /** Begins after this position, else at the first event; a replay that was interrupted goes on where it was. */
  after: Position | undefined;
  /** Both when absent. */
  only: Channel | undefined;
  /** Stops between two transactions. */
  signal: AbortSignal;
  onProgress: (progress: ReplayProgress) => void;
}

/**
 * Publishes the log as it is now again, exactly once as the relay does. Resolves true when it has come to the end, false when the signal aborted first;
 * the next call with the same publisher goes on from there.
 * Errors: `invalid_request` (the topic holds something else already), `publisher_fenced` (another replay does the same),
 * `publisher_unavailable`, `store_unavailable`.
 */
export async function replay({ log, publisher, after, only, signal, onProgress }: Replay): Promise<boolean> {
  const fresh = await publisher.isEmpty();
  const publication = await publisher.takeOver();
  try {
    if (!fresh && !publication.checkpoint) throw new TurnlogError('invalid_request', 'The topic holds messages already; name one that does not exist.');
    const logId = await logIdOf(log);
    const head = await log.head();
    let position = resumeAfter(publication.checkpoint, logId, after);
    let published = 0;
    if (logId === undefined || head === undefined || (position !== undefined && position >= head)) return true;
    for await (const batch of log.subscribe({ after: position, batchSize: BATCH_SIZE, signal })) {
      if (batch.position !== undefined && batch.position !== position) {
        const events = toPublicEvents(batch.events).filter(({ channel }) => only === undefined || channel === only);
        await publication.publish(events, { position: batch.position, log_id: logId });
        position = batch.position;
        published += events.length;
        onProgress({ published, position, percent: percentOf(position, head) });
      }
      if (batch.caughtUp || (position !== undefined && position >= head)) return true;
    }
    return false;
  } finally {
    await publication.close();
  }
}
