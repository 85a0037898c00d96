import { backoffMs } from '../../shared/lib/time/backoff.ts';
import { isTurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { sleepUntilAborted } from '../../shared/lib/time/sleep.ts';
import { abortable } from '../../shared/lib/concurrency/abortable.ts';
import type { StoreLogger } from './logger.ts';
import { createTrail, type Identified } from '../../shared/eventlog/identity/logIdentity.ts';
import type { EventStore } from '../../shared/ports/eventStore.ts';
import { batches } from './batches.ts';
import type { Connection, Connections } from './connection.ts';
import { openFeed, type Feed } from './feed.ts';
import type { KnownEvents } from './knownEvents.ts';
import { createLogView, type LogView } from './logView.ts';
import { fromPosition } from './positions.ts';
import { PAUSES } from './retry.ts';
import { isAccessDenied, isUnauthenticated, saidBy } from './serverErrors.ts';

/** A user who is refused is refused again, until somebody grants the right. */
const REFUSED_PAUSE_MS = 5_000;

/** Going on from there would be silently wrong. */
const FINAL = ['position_invalid', 'log_changed', 'log_restored'] as const;

interface Dependencies {
  connections: Connections;
  known: KnownEvents;
  /** How long nothing may be heard when a subscription is opened, in milliseconds. */
  deadlineMs: number;
  /** Where checkpoints are compared with the log. */
  log: Identified;
  logger: StoreLogger | undefined;
}

/**
 * Subscriptions that outlive their connection: they go on after the last position that was handed
 * out, until aborted. Where they begin is checked each time: the log may be another one by then, and
 * a server takes a position beyond the end of its log for "from now on", or waits.
 */
export function createSubscribe({
  connections,
  known,
  deadlineMs,
  log,
  logger,
}: Dependencies): EventStore['subscribe'] {
  const { requiresLeader, closed } = connections;

  return async function* subscribe({ after, batchSize, signal }) {
    if (typeof after === 'string') fromPosition(after);
    const trail = createTrail(log, after);
    let position = trail.resumesAfter();
    /** What was logged last, until a batch comes: a store that refuses for hours says it once. */
    let logged: string | undefined;
    const over = AbortSignal.any([signal, closed]);
    for (let failures = 0; !signal.aborted; failures += 1) {
      let connection: Connection | undefined;
      let view: LogView | undefined;
      let feed: Feed | undefined;
      let pauseMs = backoffMs(PAUSES, failures);
      try {
        connection = await connections.current(over);
        view = createLogView({
          connection,
          limitMs: deadlineMs,
          requiresLeader,
          signal: AbortSignal.any([over, connection.lost]),
          logger,
        });
        await abortable(trail.verify(), over);
        // Others' records that were passed beyond the last event of ours may be gone as well.
        position = trail.resumesAfter();
        if (position !== undefined) await view.requireWithin(position);
        feed = await openFeed(connection, {
          after: position,
          requiresLeader,
          confirmationMs: deadlineMs,
          signal: over,
        });
        for await (const batch of batches(feed, { batchSize, position, known, view })) {
          ({ position } = batch);
          failures = 0;
          logged = undefined;
          yield { ...batch, checkpoint: await trail.passed(batch.events) };
          if (signal.aborted) return;
        }
      } catch (thrown) {
        if (signal.aborted) return;
        if (closed.aborted) throw closed.reason;
        const error: unknown =
          view && position !== undefined
            ? await view.explain(position, thrown).catch(() => thrown)
            : thrown;
        if (FINAL.some((code) => isTurnlogError(error, code))) throw error;
        if (connection) connections.failed(connection, error);
        const reason = saidBy(error);
        if (reason !== logged)
          logger?.warn(
            { after: position, reason },
            'the subscription to the event store broke off; resuming',
          );
        logged = reason;
        if (isUnauthenticated(error) || isAccessDenied(error)) pauseMs = REFUSED_PAUSE_MS;
      } finally {
        feed?.stop();
      }
      await sleepUntilAborted(pauseMs, { signal: over });
    }
  };
}
