import { followLog } from '../../../shared/eventlog/following/followLog.ts';
import { repeatUntilAborted } from '../../../shared/lib/concurrency/repeatUntilAborted.ts';
import { createBackoff } from '../../../shared/lib/time/backoff.ts';
import { isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { sleepUntilAborted } from '../../../shared/lib/time/sleep.ts';
import type { Checkpoint, Position, StoredEvent } from '../../../shared/ports/eventStore.ts';
import { streamKind } from '../../../shared/eventlog/streams.ts';
import { percentOf } from '../../../shared/projections/progress.ts';
import { createLogEndEstimate } from '../../../shared/eventlog/identity/endOfLog.ts';
import { createLogChanges, restoredLog, type RestoredLog } from './logChanges.ts';
import type { AppliedBatch, Projection } from './projection.ts';
import { troubleReason } from './reports.ts';

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
  onAccepted: () => Promise<void>;
}

const isOfSession = ({ stream }: StoredEvent): boolean => streamKind(stream) === 'session';

/** One subscription, from the checkpoint on, until it fails or the signal aborts. */
async function follow(projection: Projection, course: Course): Promise<void> {
  const { log, store, signal, onProgress, lag, gatherMs } = projection;
  course.checkpoint = await store.checkpoint();
  const after = course.checkpoint;
  // The first batch is always applied: events of others, up to which everything was shown, may be
  // missing from a log that was restored.
  let position: Position | undefined;
  const endOfLog = createLogEndEstimate(log);
  let end: Position | undefined;
  // What was applied before a thread died may not have been reported.
  let isFirst = true;
  let progress: AppliedBatch;

  await followLog({
    log,
    after,
    batchSize: BATCH_SIZE,
    signal,
    ...(lag && { lag }),
    onAccepted: course.onAccepted,
    async handleBatch({ events, position: reached, checkpoint, caughtUp }) {
      const moved = reached !== undefined && reached !== position;
      const parked = moved ? await store.apply(events, { position: reached, checkpoint }) : [];
      position = reached ?? position ?? after?.position;
      course.checkpoint = checkpoint;
      course.events += events.length;
      if (!caughtUp && (end === undefined || (position ?? '') >= end))
        end = await endOfLog.latest();
      // While the store has not said where its log ends, the rest is unknown.
      const percent = caughtUp ? 100 : end === undefined ? 0 : percentOf(position, end);
      const onlySessions = !isFirst && events.every(isOfSession);
      isFirst = false;
      progress = { position, caughtUp, percent, onlySessions, events: course.events, parked };
    },
    async onHandled() {
      onProgress(progress);
      if (gatherMs !== undefined && progress.caughtUp && progress.onlySessions)
        await sleepUntilAborted(gatherMs, { signal });
    },
  });
}

/**
 * Applies every event of the log to the store, first what is there, then live, until the signal
 * aborts. A failure is logged; after a pause, from 0.1 s doubling to 5 s, the projection resumes from
 * its checkpoint. While the log does not hold the checkpoint, nothing is applied, and the log is
 * checked again and again. The projection ends by itself only where the log was declared to be
 * restored, and resolves with that.
 */
export async function runProjection(projection: Projection): Promise<RestoredLog | undefined> {
  const { signal, logger } = projection;
  const changes = createLogChanges(projection);
  const course: Course = { events: 0, checkpoint: undefined, onAccepted: changes.fits };
  const pauses = createBackoff(PAUSES);
  let restored: RestoredLog | undefined;
  let before = 0;
  await repeatUntilAborted({
    async run() {
      before = course.events;
      await follow(projection, course);
      return 0;
    },
    async onFailure(error) {
      if (signal.aborted) return 'stop';
      restored = restoredLog(error, course.checkpoint);
      if (restored) return 'stop';
      if (isTurnlogError(error, 'log_changed')) return changes.refused(error);
      if (course.events > before) pauses.reset();
      const retry_in_ms = pauses.next();
      projection.onTrouble?.(troubleReason(error));
      logger.warn(
        { err: error, retry_in_ms },
        'The projection failed and resumes from its checkpoint',
      );
      return retry_in_ms;
    },
    signal,
  });
  return restored;
}
