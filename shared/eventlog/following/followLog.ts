import { withIdleTicks } from '../../lib/time/withIdleTicks.ts';
import type { Checkpoint, EventBatch, EventLog, Position } from '../../ports/eventStore.ts';
import type { LagTracker } from '../identity/lag.ts';

/** `stop` ends the subscription. */
type Next = void | 'stop';

/** One subscription of a follower of the log. */
export interface Following {
  log: Pick<EventLog, 'subscribe'>;
  /**
   * Where to resume: a checkpoint, which the log is checked to hold, or a position that an operator
   * names. The first event without either.
   */
  after: Checkpoint | Position | undefined;
  batchSize: number;
  signal: AbortSignal;
  /** Called once, when the log has accepted the checkpoint. */
  onAccepted?: () => void | Promise<void>;
  /** Handles a batch, and commits its checkpoint together with the effects. */
  handleBatch: (batch: EventBatch) => Next | Promise<Next>;
  /** Called whenever the subscription has brought nothing for so long. */
  idle?: {
    afterMs: number;
    onIdle: (reached: Position | undefined) => Promise<void>;
  };
  /** Measures how far the follower is behind. */
  lag?: Pick<LagTracker, 'startBatch' | 'finishBatch'>;
  /** Called after each batch, when the lag is up to date. */
  onHandled?: (batch: EventBatch) => void | Promise<void>;
}

/**
 * Follows the log, first what is there, then live, until the signal aborts, a handler stops it, or a
 * failure.
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
  const ended = new AbortController();
  const batches = log.subscribe({
    after,
    batchSize,
    signal: AbortSignal.any([signal, ended.signal]),
  });
  let reached = typeof after === 'object' ? after.position : after;
  let isAccepted = false;
  try {
    for await (const batch of idle ? withIdleTicks(batches, idle.afterMs) : batches) {
      if (batch === 'idle') {
        await idle?.onIdle(reached);
        if (signal.aborted) return;
        continue;
      }
      if (!isAccepted) await onAccepted?.();
      isAccepted = true;
      lag?.startBatch(batch);
      const next = await handleBatch(batch);
      reached = batch.position;
      lag?.finishBatch();
      await onHandled?.(batch);
      if (next === 'stop' || signal.aborted) return;
    }
  } finally {
    ended.abort();
  }
  if (!signal.aborted) throw new Error('the subscription ended');
}
