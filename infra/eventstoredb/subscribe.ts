import { backOffMs } from '../../shared/backOff.ts';
import { isTurnlogError } from '../../shared/errors.ts';
import { pauseAtMost } from '../../shared/pause.ts';
import type { StoreLogger } from './logger.ts';
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

interface Dependencies {
  connections: Connections;
  known: KnownEvents;
  /** How long nothing may be heard when a subscription is opened, in milliseconds. */
  deadlineMs: number;
  logger: StoreLogger | undefined;
}

/**
 * Subscriptions that outlive their connection: they go on after the last position that was handed
 * out, until aborted. Where they begin is checked each time, because a server takes a position
 * beyond the end of its log for "from now on", or waits.
 */
export function createSubscribe({
  connections,
  known,
  deadlineMs,
  logger,
}: Dependencies): EventStore['subscribe'] {
  const { requiresLeader, closed } = connections;

  return async function* subscribe({ after, batchSize, signal }) {
    let position = after;
    if (position !== undefined) fromPosition(position);
    /** What was logged last, until a batch comes: a store that refuses for hours says it once. */
    let logged: string | undefined;
    const over = AbortSignal.any([signal, closed]);
    for (let failures = 0; !signal.aborted; failures += 1) {
      let connection: Connection | undefined;
      let view: LogView | undefined;
      let feed: Feed | undefined;
      let pauseMs = backOffMs(PAUSES, failures);
      try {
        connection = await connections.current(over);
        view = createLogView({
          connection,
          limitMs: deadlineMs,
          requiresLeader,
          signal: AbortSignal.any([over, connection.lost]),
          logger,
        });
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
          yield batch;
          if (signal.aborted) return;
        }
      } catch (thrown) {
        if (signal.aborted) return;
        if (closed.aborted) throw closed.reason;
        const error: unknown =
          view && position !== undefined
            ? await view.explain(position, thrown).catch(() => thrown)
            : thrown;
        if (isTurnlogError(error, 'position_invalid')) throw error;
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
      await pauseAtMost(pauseMs, { signal: over });
    }
  };
}
