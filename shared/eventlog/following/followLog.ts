import { withIdleTicks } from '../../lib/time/withIdleTicks.ts';
import type {
  Checkpoint,
  EventBatch,
  EventLog,
  Position,
  StoredEvent,
} from '../../ports/eventStore.ts';
import type { LagTracker } from '../identity/lag.ts';

/** `stop` ends the subscription. */
type Next = void | 'stop';

/** One subscription of a follower of the log. */
interface Following {
  log: Pick<EventLog, 'subscribe'>;
  /**
   * The start: a checkpoint, which the log must contain, or a position given by an operator.
   * From the first event when undefined.
   */
  after: Checkpoint | Position | undefined;
  batchSize: number;
  signal: AbortSignal;
  /** Called once the log has accepted the checkpoint. */
  onAccepted?: () => void | Promise<void>;
  /** Handles a batch, and commits its checkpoint together with the effects. */
  handleBatch: (batch: EventBatch) => Next | Promise<Next>;
  /** Called when the subscription has delivered nothing for `afterMs`. */
  idle?: {
    afterMs: number;
    onIdle: (reached: Position | undefined) => Promise<void>;
  };
  /** Tracks how far the follower is behind. */
  lag?: Pick<LagTracker, 'startBatch' | 'finishBatch'>;
  /** Called after each batch, once the lag is updated. */
  onHandled?: (batch: EventBatch) => void | Promise<void>;
}

/**
 * Follows the log, first the existing events, then live, until the signal aborts, a handler stops
 * it or it fails.
 */
export async function followLog({
  log,
  after,
  batchSize,
  signal,
  onAccepted,
  handleBatch,
  idle,
  lag,
  onHandled,
}: Following): Promise<void> {
  const endSubscription = new AbortController();
  const batches = log.subscribe({
    after,
    batchSize,
    signal: AbortSignal.any([signal, endSubscription.signal]),
  });
  let lastPosition = typeof after === 'object' ? after.position : after;
  let isAccepted = false;
  try {
    for await (const batch of idle ? withIdleTicks(batches, idle.afterMs) : batches) {
      if (batch === 'idle') {
        await idle?.onIdle(lastPosition);
        if (signal.aborted) return;
        continue;
      }
      if (!isAccepted) await onAccepted?.();
      isAccepted = true;
      lag?.startBatch(batch);
      const next = await handleBatch(batch);
      lastPosition = batch.position;
      lag?.finishBatch();
      await onHandled?.(batch);
      if (next === 'stop' || signal.aborted) return;
    }
  } finally {
    endSubscription.abort();
  }
  if (!signal.aborted) throw new Error('the subscription ended');
}

/**
 * Follows the log until `isComplete`, checked before each event, or up to the present end of
 * the log.
 */
export const readLogUntil = (
  isComplete: () => boolean,
  handleEvent: (event: StoredEvent) => void | Promise<void>,
  following: Pick<Following, 'log' | 'after' | 'batchSize' | 'signal'>,
): Promise<void> =>
  followLog({
    ...following,
    async handleBatch({ events, caughtUp }) {
      for (const event of events) {
        if (isComplete()) return 'stop';
        await handleEvent(event);
      }
      return caughtUp || isComplete() ? 'stop' : undefined;
    },
  });
