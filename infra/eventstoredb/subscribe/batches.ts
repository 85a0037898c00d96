import { LIMITS } from '../../../shared/limits.ts';
import {
  bytesOf,
  type EventBatch,
  type Position,
  type StoredEvent,
} from '../../../shared/ports/eventStore.ts';
import type { RecentEventIds } from '../append/recentEventIds.ts';
import type { LogVerifier } from './logVerifier.ts';
import type { SubscriptionStream } from './subscriptionStream.ts';

/**
 * How long a partial batch waits for the next message, and in total, in milliseconds. Full batches
 * speed up a rebuild.
 */
const CATCH_UP_WAIT = { messageMs: 10, totalMs: 250 };
/** The same for a live subscription that meets a backlog. */
const BURST_WAIT = { messageMs: 2, totalMs: 50 };
/** A live subscription without messages for this time, in milliseconds, is compared with the log. */
const IDLE_MS = 1_000;

interface BatchOptions {
  batchSize: number;
  /** The start of the subscription. */
  position: Position | undefined;
  recentEventIds: RecentEventIds;
  verifier: LogVerifier;
}

/** Yields the batches of one subscription call until an error ends the call. */
export async function* readBatches(
  stream: SubscriptionStream,
  { batchSize, position, recentEventIds, verifier }: BatchOptions,
): AsyncGenerator<Omit<EventBatch, 'checkpoint'>, never> {
  let isLive = false;
  /** False after a backlog, until the log confirms its end: servers do not report it. */
  let isUpToDate = true;
  let reportedCaughtUp = true;
  // The subscription has not caught up before it delivered every event that this process appended.
  const isCaughtUp = (): boolean =>
    isLive &&
    isUpToDate &&
    stream.isEmpty() &&
    (position ?? '') >= (recentEventIds.lastAppended() ?? '');

  /** Waits for another message of a partial batch. Resolves with false to yield the batch. */
  async function waitForMore(startedAt: number, hasBacklog: boolean): Promise<boolean> {
    if (isLive && !hasBacklog) return false;
    // A new backlog may be a short burst. One that outlasts a batch is worth a longer wait.
    const { messageMs, totalMs } = isLive && isUpToDate ? BURST_WAIT : CATCH_UP_WAIT;
    const remainingMs = startedAt + totalMs - performance.now();
    return remainingMs > 0 && (await stream.waitForMessage(Math.min(remainingMs, messageMs)));
  }

  for (;;) {
    const events: StoredEvent[] = [];
    let bytes = 0;
    const startPosition = position;
    // Servers do not report that a live subscription falls behind. A full buffer indicates it.
    const hasBacklog: boolean = stream.isFull() || !isUpToDate;
    let waitingSince: number | undefined;
    let becameLive = false;
    while (events.length < batchSize && bytes < LIMITS.store.batchBytes) {
      const message = stream.take();
      if (message?.kind === 'event') {
        events.push(message.event);
        bytes += bytesOf(message.event);
        ({ position } = message.event);
      } else if (message?.kind === 'checkpoint') {
        // A checkpoint may lie before the last event.
        if (
          (message.position === undefined || message.position > (position ?? '')) &&
          (await verifier.isValidCheckpoint(message.position))
        )
          ({ position } = message);
      } else if (message) {
        isLive = true;
        becameLive = true;
      } else if (events.length > 0 || position !== startPosition) {
        if (!(await waitForMore((waitingSince ??= performance.now()), hasBacklog))) break;
      } else if ((becameLive || !reportedCaughtUp) && isCaughtUp()) {
        break;
      } else if (!(await stream.waitForMessage(IDLE_MS)) && isLive) {
        position = await verifier.advanceWhileIdle(position);
        isUpToDate ||= await verifier.isEndOfLog(position);
      }
    }
    if (isLive && (hasBacklog || events.length === batchSize || bytes >= LIMITS.store.batchBytes))
      isUpToDate = stream.isEmpty() && (await verifier.isEndOfLog(position));
    reportedCaughtUp = isCaughtUp();
    yield { events, position, caughtUp: reportedCaughtUp };
  }
}
