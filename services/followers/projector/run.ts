import { createBackoff } from '../../../shared/lib/time/backoff.ts';
import { isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { sleepUntilAborted } from '../../../shared/lib/time/sleep.ts';
import type { Checkpoint, Position, StoredEvent } from '../../../shared/ports/eventStore.ts';
import { streamKind } from '../../../shared/eventlog/streams.ts';
import { percentOf } from '../../../shared/projections/progress.ts';
import { createEndOfLog } from '../../../shared/eventlog/identity/endOfLog.ts';
import { createLogChanges, restoredLog, type RestoredLog } from './logChanges.ts';
import type { Projection } from './projection.ts';
import { troubleOf } from './reports.ts';

/**
 * Large, because a batch costs one statement for each row that it changes and one commit: catching
 * up is bound by that.
 */
const BATCH_SIZE = 1000;
const PAUSES = { firstMs: 100, longestMs: 5000 };

interface Course {
  /** Events applied since the projection started. */
  events: number;
  /** Where the latest subscription was, for what it fails with. */
  checkpoint: Checkpoint | undefined;
  /** Called when the log has accepted the checkpoint. */
  fits: () => Promise<void>;
}

const isOfSession = ({ stream }: StoredEvent): boolean => streamKind(stream) === 'session';

/** One subscription, from the checkpoint on, until it fails or the signal aborts. */
async function follow(projection: Projection, course: Course): Promise<void> {
  const { log, store, signal, onProgress, onReading, gatherMs } = projection;
  course.checkpoint = await store.checkpoint();
  const after = course.checkpoint;
  // The first batch is applied whatever it says: others' records, up to which everything was shown,
  // may be gone from a log that was restored.
  let position: Position | undefined;
  const endOfLog = createEndOfLog(log);
  let end: Position | undefined;
  // What was applied before a thread died may never have been told.
  let toldAll = false;
  for await (const batch of log.subscribe({ after, batchSize: BATCH_SIZE, signal })) {
    await course.fits();
    onReading?.(batch);
    const reached = batch.position;
    const { checkpoint } = batch;
    const moved = reached !== undefined && reached !== position;
    const parked = moved ? await store.apply(batch.events, { position: reached, checkpoint }) : [];
    position = reached ?? position ?? after?.position;
    course.checkpoint = checkpoint;
    course.events += batch.events.length;
    if (!batch.caughtUp && (end === undefined || (position ?? '') >= end))
      end = await endOfLog.latest();
    // Where the store has not said where its log ends, nothing is known of how much is left.
    const percent = batch.caughtUp ? 100 : end === undefined ? 0 : percentOf(position, end);
    const { caughtUp } = batch;
    const onlySessions = toldAll && batch.events.every(isOfSession);
    toldAll = true;
    onProgress({ position, caughtUp, percent, onlySessions, events: course.events, parked });
    if (signal.aborted) return;
    if (gatherMs !== undefined && caughtUp && onlySessions)
      await sleepUntilAborted(gatherMs, { signal });
  }
  if (!signal.aborted) throw new Error('the subscription ended');
}

/**
 * Applies every event of the log to the store, first what is there, then live, until the signal
 * aborts. A failure is logged and followed by a pause, from 0.1 s doubling to 5 s, and by going on
 * from the last checkpoint. A log that does not hold the checkpoint is not followed: that is said,
 * and the log looked at until it does. It ends by itself in one case only, and resolves with it
 * then: the log was restored, and what follows from the checkpoint can't be known.
 */
export async function runProjection(projection: Projection): Promise<RestoredLog | undefined> {
  const { signal, logger } = projection;
  const changes = createLogChanges(projection);
  const course: Course = { events: 0, checkpoint: undefined, fits: changes.fits };
  const pauses = createBackoff(PAUSES);
  while (!signal.aborted) {
    const before = course.events;
    try {
      await follow(projection, course);
    } catch (error) {
      if (signal.aborted) return undefined;
      const restored = restoredLog(error, course.checkpoint);
      if (restored) return restored;
      if (isTurnlogError(error, 'log_changed')) {
        await changes.refused(error);
        continue;
      }
      if (course.events > before) pauses.reset();
      const retryInMs = pauses.next();
      projection.onTrouble?.(troubleOf(error));
      logger.warn(
        { err: error, retry_in_ms: retryInMs },
        'The projection failed and goes on from its checkpoint',
      );
      await sleepUntilAborted(retryInMs, { signal });
    }
  }
  return undefined;
}
