import {
  createCheckpointTracker,
  type IdentifiableLog,
} from '../../../shared/eventlog/identity/logIdentity.ts';
import { abortable } from '../../../shared/lib/concurrency/abortable.ts';
import { isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { backoffMs } from '../../../shared/lib/time/backoff.ts';
import { sleepUntilAborted } from '../../../shared/lib/time/sleep.ts';
import {
  type EventStore,
  type EventBatch,
  type Position,
  type StoredEvent,
} from '../../../shared/ports/eventStore.ts';
import type { RecentEventIds } from '../append/recentEventIds.ts';
import { RETRY_BACKOFF } from '../connection/callRetry.ts';
import type { ConnectionManager, NodeConnection } from '../connection/connectionManager.ts';
import { isAccessDenied, isUnauthenticated, serverMessage } from '../connection/serverErrors.ts';
import type { StoreLogger } from '../connection/troubleLog.ts';
import { parsePosition } from '../read/positions.ts';
import { createLogVerifier, type LogVerifier } from './logVerifier.ts';
import { openSubscriptionStream, type SubscriptionStream } from './subscriptionStream.ts';
import { LIMITS } from '../../../shared/limits.ts';

/**
 * How long a partial batch waits for the next message, and in total, in milliseconds. Full batches
 * speed up a rebuild.
 */
const CATCH_UP_WAIT = { messageMs: 10, totalMs: 250 };
/** The same waits for a live subscription with a backlog. */
const BURST_WAIT = { messageMs: 2, totalMs: 50 };
/** A live subscription without messages for this time, in milliseconds, is compared with the log. */
const IDLE_MS = 1_000;

interface BatchOptions {
  batchSize: number;
  /** The start of the subscription. */
  position: Position | undefined;
  recentEventIds: RecentEventIds;
  verifier: LogVerifier;
  reportFalsePosition: ConnectionManager['reportFalsePosition'];
}

/**
 * Yields the batches of one subscription call until an error ends the call. Throws for an event that
 * does not follow the last one: a relay would publish it twice, and a prover sign another leaf.
 */
export async function* readBatches(
  stream: SubscriptionStream,
  { batchSize, position, recentEventIds, verifier, reportFalsePosition }: BatchOptions,
): AsyncGenerator<Omit<EventBatch, 'checkpoint'>, never> {
  let isLive = false;
  /** False after a backlog, until the log confirms its end: servers do not report it. */
  let isUpToDate = true;
  let reportedCaughtUp = true;
  /** The position of the last event, or of the one to resume after. Checkpoints may lie beyond it. */
  let lastEventAt = position;
  // The subscription is caught up only after it has delivered every event that this process
  // appended.
  const isCaughtUp = (): boolean =>
    isLive &&
    isUpToDate &&
    stream.isEmpty() &&
    (position ?? '') >= (recentEventIds.lastAppended() ?? '');

  /** Waits for another message of a partial batch. Resolves with false to yield the batch. */
  async function waitForMore(
    startedAt: number,
    hasBacklog: boolean,
    missing: number,
  ): Promise<boolean> {
    if (isLive && !hasBacklog) return false;
    // A new backlog may be a short burst. One that outlasts a batch is worth a longer wait.
    const { messageMs, totalMs } = isLive && isUpToDate ? BURST_WAIT : CATCH_UP_WAIT;
    const remainingMs = startedAt + totalMs - performance.now();
    return (
      remainingMs > 0 && (await stream.waitForMessages(Math.min(remainingMs, messageMs), missing))
    );
  }

  /** Forgets an acknowledged append if the log ends before it: it would never be delivered. */
  async function forgetBeyondEnd(appended: Position): Promise<void> {
    if (!(await verifier.endsBefore(appended))) return;
    recentEventIds.forgetAppended(appended);
    reportFalsePosition(appended);
  }

  for (;;) {
    const events: StoredEvent[] = [];
    let bytes = 0;
    const startPosition = position;
    // Servers do not report that a live subscription falls behind. Waiting messages indicate it.
    const hasBacklog: boolean = stream.isBehind() || !isUpToDate;
    let waitingSince: number | undefined;
    let becameLive = false;
    while (events.length < batchSize && bytes < LIMITS.store.batchBytes) {
      const message = stream.take();
      if (message?.kind === 'event') {
        events.push(message.event);
        bytes += message.bytes;
        ({ position } = message.event);
        if (position <= (lastEventAt ?? ''))
          throw new Error(
            `the event store sent the event at ${position} after the one at ${lastEventAt}`,
          );
        lastEventAt = position;
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
        const missing = batchSize - events.length;
        if (!(await waitForMore((waitingSince ??= performance.now()), hasBacklog, missing))) break;
      } else if ((becameLive || !reportedCaughtUp) && isCaughtUp()) {
        break;
      } else if (!(await stream.waitForMessages(IDLE_MS)) && isLive) {
        const appended = recentEventIds.lastAppended();
        position = await verifier.advanceWhileIdle(position);
        isUpToDate ||= await verifier.isEndOfLog(position);
        if (appended !== undefined && appended > (position ?? '')) await forgetBeyondEnd(appended);
      }
    }
    if (isLive && (hasBacklog || events.length === batchSize || bytes >= LIMITS.store.batchBytes))
      isUpToDate = stream.isEmpty() && (await verifier.isEndOfLog(position));
    reportedCaughtUp = isCaughtUp();
    yield { events, position, caughtUp: reportedCaughtUp };
  }
}

/** The pause after the server refused the user, in milliseconds. An operator must grant the right. */
const REFUSED_PAUSE_MS = 1_000;

/** Resuming after one of these errors would deliver wrong events without an error. */
const FINAL_ERRORS = ['position_invalid', 'log_changed', 'log_restored'] as const;

interface Dependencies {
  connections: ConnectionManager;
  recentEventIds: RecentEventIds;
  /** The time limit for opening a subscription, in milliseconds. */
  deadlineMs: number;
  /** The log that checkpoints are compared with. */
  log: IdentifiableLog;
  logger: StoreLogger | undefined;
}

/**
 * Creates the port's subscribe. A subscription resumes on the next connection after the last
 * position that it delivered, until aborted. Each start verifies the position: the log may have
 * been replaced, and a server treats a position beyond the end as "from now on", or waits.
 */
export function createSubscribe({
  connections,
  recentEventIds,
  deadlineMs,
  log,
  logger,
}: Dependencies): EventStore['subscribe'] {
  const { requiresLeader, closed } = connections;

  return async function* subscribe({ after, batchSize, signal }) {
    if (typeof after === 'string') parsePosition(after);
    const trail = createCheckpointTracker(log, after);
    let position = trail.resumesAfter();
    /** The last logged reason, reset by a batch: a reason that persists is logged once. */
    let loggedReason: string | undefined;
    const ended = AbortSignal.any([signal, closed]);
    for (let failures = 0; !signal.aborted; failures += 1) {
      let connection: NodeConnection | undefined;
      let verifier: LogVerifier | undefined;
      let stream: SubscriptionStream | undefined;
      let pauseMs = backoffMs(RETRY_BACKOFF, failures);
      try {
        connection = await connections.current(ended);
        verifier = createLogVerifier({
          connection,
          limitMs: deadlineMs,
          requiresLeader,
          signal: AbortSignal.any([ended, connection.lost]),
          logger,
        });
        await abortable(trail.verify(), ended);
        // Records of other applications after our last event may be missing from a restored log as
        // well.
        position = trail.resumesAfter();
        if (position !== undefined) await verifier.requireWithinLog(position);
        stream = await openSubscriptionStream(connection, {
          after: position,
          requiresLeader,
          confirmationMs: deadlineMs,
          signal: ended,
        });
        const { reportFalsePosition } = connections;
        const options = { batchSize, position, recentEventIds, verifier, reportFalsePosition };
        for await (const batch of readBatches(stream, options)) {
          ({ position } = batch);
          failures = 0;
          loggedReason = undefined;
          yield { ...batch, checkpoint: await trail.advance(batch.events) };
          if (signal.aborted) return;
        }
      } catch (thrown) {
        if (signal.aborted) return;
        if (closed.aborted) throw closed.reason;
        const error: unknown =
          verifier && position !== undefined
            ? await verifier.explainError(position, thrown).catch(() => thrown)
            : thrown;
        if (FINAL_ERRORS.some((code) => isTurnlogError(error, code))) throw error;
        if (connection) connections.reportFailure(connection, error);
        const reason = serverMessage(error);
        if (reason !== loggedReason)
          logger?.warn(
            { after: position, reason },
            'the subscription to the event store was interrupted; resuming',
          );
        loggedReason = reason;
        if (isUnauthenticated(error) || isAccessDenied(error)) pauseMs = REFUSED_PAUSE_MS;
      } finally {
        stream?.cancel();
      }
      await sleepUntilAborted(pauseMs, { signal: ended });
    }
  };
}
