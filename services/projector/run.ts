import { createBackOff } from '../../shared/backOff.ts';
import { pauseAtMost } from '../../shared/pause.ts';
import { requirePosition } from '../../shared/eventlog/positions.ts';
import type { EventBatch, Position } from '../../shared/ports/eventStore.ts';
import { percentOf } from '../../shared/projections/progress.ts';
import { createEndOfLog } from '../../shared/eventlog/endOfLog.ts';
import type { Projection } from './projection.ts';
import { troubleOf } from './reports.ts';
import {
  asRefusal,
  CheckpointRefusal,
  createRefusalJudge,
  type RefusedCheckpoint,
} from './refusedCheckpoint.ts';

/**
 * Large, because a batch costs one statement for each row that it changes and one commit: catching
 * up is bound by that.
 */
const BATCH_SIZE = 1000;
const PAUSES = { firstMs: 100, longestMs: 5000 };

/** The batches after the checkpoint. Errors: a CheckpointRefusal where the log has it not. */
async function* resume(
  { log, signal }: Projection,
  checkpoint: Position | undefined,
): AsyncGenerator<EventBatch> {
  let reached = checkpoint;
  try {
    requirePosition(checkpoint);
    for await (const batch of log.subscribe({ after: checkpoint, batchSize: BATCH_SIZE, signal })) {
      yield batch;
      reached = batch.position ?? reached;
    }
  } catch (error) {
    throw asRefusal(error, reached);
  }
}

interface Course {
  /** Events applied since the projection started. */
  events: number;
  /**
   * Called when the log has accepted the checkpoint. Returns why it is not to be gone on from all
   * the same.
   */
  accepted: (checkpoint: Position | undefined) => RefusedCheckpoint | undefined;
}

/**
 * One subscription, from the checkpoint on, until it fails, the checkpoint is given up, or the
 * signal aborts.
 */
async function follow(
  projection: Projection,
  course: Course,
): Promise<RefusedCheckpoint | undefined> {
  const { log, store, signal, onProgress, onReading } = projection;
  const checkpoint = await store.checkpoint();
  let position = checkpoint;
  const endOfLog = createEndOfLog(log);
  let end: Position | undefined;
  for await (const batch of resume(projection, position)) {
    const refused = course.accepted(checkpoint);
    if (refused) return refused;
    onReading?.(batch);
    const moved = batch.position !== undefined && batch.position !== position;
    const parked =
      moved && batch.position !== undefined ? await store.apply(batch.events, batch.position) : [];
    position = batch.position ?? position;
    course.events += batch.events.length;
    if (!batch.caughtUp && (end === undefined || (position ?? '') >= end))
      end = await endOfLog.latest();
    // Where the store has not said where its log ends, nothing is known of how much is left.
    const percent = batch.caughtUp ? 100 : end === undefined ? 0 : percentOf(position, end);
    onProgress({ position, caughtUp: batch.caughtUp, percent, events: course.events, parked });
    if (signal.aborted) return undefined;
  }
  if (!signal.aborted) throw new Error('the subscription ended');
  return undefined;
}

/**
 * Applies every event of the log to the store, first what is there, then live, until the signal
 * aborts. A failure is logged and followed by a pause, from 0.1 s doubling to 5 s, and by going on
 * from the last checkpoint. It ends by itself in one case only, and resolves with the reason then:
 * the checkpoint is no position of the log, or was none when it was looked at first, and what
 * follows from it can't be known.
 */
export async function runProjection(
  projection: Projection,
): Promise<RefusedCheckpoint | undefined> {
  const { signal, logger } = projection;
  const refusals = createRefusalJudge(projection);
  const course: Course = { events: 0, accepted: refusals.accepted };
  const pauses = createBackOff(PAUSES);
  while (!signal.aborted) {
    const before = course.events;
    try {
      const refused = await follow(projection, course);
      if (refused && !signal.aborted) return refused;
    } catch (error) {
      if (signal.aborted) return undefined;
      if (error instanceof CheckpointRefusal) {
        const refused = await refusals.judge(error);
        if (refused && !signal.aborted) return refused;
        continue;
      }
      refusals.interrupted();
      if (course.events > before) pauses.reset();
      const retryInMs = pauses.next();
      projection.onTrouble?.(troubleOf(error));
      logger.warn(
        { err: error, retry_in_ms: retryInMs },
        'The projection failed and goes on from its checkpoint',
      );
      await pauseAtMost(retryInMs, { signal });
    }
  }
  return undefined;
}
