import { isTurnlogError, TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { sleepUntilAborted } from '../../../shared/lib/time/sleep.ts';
import type { EventLog, Position } from '../../../shared/ports/eventStore.ts';
import type { Publisher } from '../../../shared/publicEvents/publisher.ts';
import type { Channel } from '../../../shared/publicEvents/schema.ts';
import type { IdentifiableLog } from '../../../shared/eventlog/identity/logIdentity.ts';
import { percentOf } from '../../../shared/projections/progress.ts';
import { followLog } from '../../../shared/eventlog/following/followLog.ts';
import { wasRestored, withRelayErrors } from './logErrors.ts';
import { toPublicEvents } from '../../../shared/publicEvents/toPublicEvents.ts';

const BATCH_SIZE = 1000;
/** In a row, without a batch published between them. */
const MAX_FAILURES = 5;
const PAUSE_MS = 500;

export interface RepublishProgress {
  /** Messages published by this call. */
  published: number;
  /** 0 to 100, of the log as it was when the replay began. */
  percent: number;
  position: Position | undefined;
}

export interface RepublishOptions {
  log: IdentifiableLog & Pick<EventLog, 'subscribe'>;
  /** Publishes to topics that nothing else publishes to. */
  publisher: Publisher;
  /**
   * Begins after this position, else at the first event; a replay that was interrupted goes on
   * where it was.
   */
  after: Position | undefined;
  /** Both when absent. */
  only: Channel | undefined;
  /** Stops between two transactions. */
  signal: AbortSignal;
  onProgress: (progress: RepublishProgress) => void;
}

interface Course {
  /** The topic held nothing when the replay began. */
  fresh: boolean;
  published: number;
  failures: number;
}

/** One publication, until the end, the signal, or a failure. Resolves true at the end. */
async function publishOn(
  { log, publisher, after, only, signal, onProgress }: RepublishOptions,
  course: Course,
): Promise<boolean> {
  await using opened = new AsyncDisposableStack();
  const publication = opened.adopt(await publisher.takeOver(), (open) => open.close());
  if (!course.fresh && !publication.checkpoint)
    throw new TurnlogError(
      'configuration_invalid',
      'The topic holds messages already; name one that does not exist.',
    );
  const start = publication.checkpoint;
  if (await wasRestored(log, start))
    throw new TurnlogError(
      'configuration_invalid',
      'The log was restored since this replay began; replay it into a topic that does not exist.',
    );
  const end = await log.head();
  let position = start?.position;
  let isComplete = false;
  await followLog({
    log: withRelayErrors(log),
    after: start ?? after,
    batchSize: BATCH_SIZE,
    signal,
    async handleBatch({ checkpoint, ...batch }) {
      if (checkpoint && checkpoint.position !== position) {
        const events = toPublicEvents(batch.events).filter(
          ({ channel }) => only === undefined || channel === only,
        );
        await publication.publish(events, checkpoint);
        position = checkpoint.position;
        course.published += events.length;
        course.failures = 0;
        onProgress({ published: course.published, position, percent: percentOf(position, end) });
      }
      isComplete = batch.caughtUp || (end !== undefined && (batch.position ?? '') >= end);
      return isComplete ? 'stop' : undefined;
    },
  });
  return isComplete;
}

/**
 * Publishes the log as it is now again, exactly once as the relay does. Resolves true when it has
 * come to the end, false when the signal aborted first; the next call with the same publisher goes
 * on from there. What can pass is tried again a few times.
 * Errors: `configuration_invalid` (the topic holds something else already), `position_invalid`
 * (where it would begin), `publisher_fenced` (another replay does the same),
 * `publisher_unavailable`, `store_unavailable`.
 */
export async function republishLog(parts: RepublishOptions): Promise<boolean> {
  const course: Course = { fresh: await parts.publisher.isEmpty(), published: 0, failures: 0 };
  for (;;) {
    try {
      return await publishOn(parts, course);
    } catch (error) {
      course.failures += 1;
      if (
        !isTurnlogError(error) ||
        !error.retriable ||
        course.failures > MAX_FAILURES ||
        parts.signal.aborted
      )
        throw error;
      await sleepUntilAborted(PAUSE_MS * course.failures, { signal: parts.signal });
    }
  }
}
