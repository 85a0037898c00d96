import { followLog } from '../../../shared/eventlog/following/followLog.ts';
import { repeatUntilAborted } from '../../../shared/lib/concurrency/repeatUntilAborted.ts';
import { createBackoff } from '../../../shared/lib/time/backoff.ts';
import { isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import {
  type Checkpoint,
  type Position,
  type StoredEvent,
} from '../../../shared/ports/eventStore.ts';
import { streamKind } from '../../../shared/eventlog/streams.ts';
import { percentOf } from '../../../shared/projections/progress.ts';
import { createLogEndEstimate } from '../../../shared/eventlog/identity/endOfLog.ts';
import { createLogChanges, findRestoredLog, type RestoredLog } from './logChanges.ts';
import type { AppliedBatch, Projection } from './projection.ts';
import { troubleReason } from './reports.ts';

/**
 * Large, because each batch costs a database at least one commit and some statements per table, which
 * bounds how fast the projection catches up.
 */
const BATCH_SIZE = 1000;
const PAUSES = { firstMs: 100, longestMs: 5000 };

interface SubscriptionState {
  /** Events applied since the projection started. */
  events: number;
  /** The checkpoint of the latest subscription, for its failure. */
  checkpoint: Checkpoint | undefined;
  /** Called when the log has accepted the checkpoint. */
  onAccepted: () => Promise<void>;
}

/** Their readers request the batch, or read the log. */
const GATHERED_STREAMS = ['session', 'request'];

const keepsKnownRows = ({ stream, type }: StoredEvent): boolean =>
  type === 'agent.created.v1' || GATHERED_STREAMS.includes(streamKind(stream));

/** One subscription, from the checkpoint on, until it fails or the signal aborts. */
async function follow(projection: Projection, state: SubscriptionState): Promise<void> {
  const { log, store, signal, onProgress, lag, gathering } = projection;
  state.checkpoint = await store.checkpoint();
  const after = state.checkpoint;
  // The first batch is always applied: a restored log may lack the foreign events up to which the read
  // models were current.
  let position: Position | undefined;
  const endOfLog = createLogEndEstimate(log);
  let endPosition: Position | undefined;
  // A thread that died may have applied events without reporting them.
  let isFirst = true;
  let progress: AppliedBatch;

  await followLog({
    log,
    after,
    batchSize: store.batchSize ?? BATCH_SIZE,
    signal,
    ...(lag && { lag }),
    onAccepted: state.onAccepted,
    async handleBatch({ events, position: reached, checkpoint, caughtUp }) {
      const moved = reached !== undefined && reached !== position;
      const parked = moved ? await store.apply(events, { position: reached, checkpoint }) : [];
      position = reached ?? position ?? after?.position;
      state.checkpoint = checkpoint;
      state.events += events.length;
      if (!caughtUp && (endPosition === undefined || (position ?? '') >= endPosition))
        endPosition = await endOfLog.latest();
      // Progress is unknown until the store has reported the end of its log.
      const percent = caughtUp
        ? 100
        : endPosition === undefined
          ? 0
          : percentOf(position, endPosition);
      const keepsRows = !isFirst && events.every(keepsKnownRows);
      isFirst = false;
      progress = {
        position,
        caughtUp,
        percent,
        keepsKnownRows: keepsRows,
        events: state.events,
        parked,
      };
    },
    async onHandled() {
      onProgress(progress);
      if (progress.caughtUp && progress.keepsKnownRows) await gathering?.pause(signal);
    },
  });
}

/**
 * Applies every event of the log to the store, first the existing ones, then new ones, until the
 * signal aborts. A failure is logged; after a pause, from 0.1 s doubling to 5 s, the projection
 * resumes from its checkpoint. While the log does not hold the checkpoint, nothing is applied and the
 * log is checked repeatedly. The projection ends early only when the log was declared restored, and
 * resolves with that.
 */
export async function runProjection(projection: Projection): Promise<RestoredLog | undefined> {
  const { signal, logger } = projection;
  const changes = createLogChanges(projection);
  const state: SubscriptionState = {
    events: 0,
    checkpoint: undefined,
    onAccepted: changes.onAccepted,
  };
  const pauses = createBackoff(PAUSES);
  let restored: RestoredLog | undefined;
  let eventsBefore = 0;
  await repeatUntilAborted({
    async run() {
      eventsBefore = state.events;
      await follow(projection, state);
      return 0;
    },
    async onFailure(error) {
      if (signal.aborted) return 'stop';
      restored = findRestoredLog(error, state.checkpoint);
      if (restored) return 'stop';
      if (isTurnlogError(error, 'log_changed')) return changes.onRefused(error);
      if (state.events > eventsBefore) pauses.reset();
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
