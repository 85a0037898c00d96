import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../../shared/logger.ts';
import type { EventBatch, EventStore, Position, StoredEvent } from '../../shared/ports/eventStore.ts';
import type { Connections } from './connection.ts';
import { openFeed, type Feed } from './feed.ts';
import type { KnownEvents } from './knownEvents.ts';
import { backOff } from './retry.ts';

/** While catching up a batch that is not full waits so long for more: full batches are what makes a rebuild fast. */
const GATHER_MS = 10;

interface BatchOptions {
  batchSize: number;
  /** Where the feed begins. */
  position: Position | undefined;
  known: KnownEvents;
}

/** Batches of one feed; ends only by throwing what ended the feed. */
async function* batches(feed: Feed, { batchSize, position, known }: BatchOptions): AsyncGenerator<EventBatch, never> {
  let live = false;
  // An event that was acknowledged here may still be on its way: until it has come, nothing has caught up with it.
  const caughtUp = (): boolean => live && feed.isEmpty() && (position ?? '') >= (known.lastWritten() ?? '');

  for (;;) {
    const events: StoredEvent[] = [];
    const before = position;
    let due = false;
    while (events.length < batchSize) {
      const step = feed.take();
      if (step?.kind === 'event') {
        events.push(step.event);
        ({ position } = step.event);
      } else if (step?.kind === 'checkpoint') {
        // A checkpoint may lie before the last event.
        if (position === undefined || step.position > position) ({ position } = step);
      } else if (step) {
        live = step.kind === 'caught_up';
        due = live;
      } else if (events.length > 0 && !live) {
        await feed.arrival(GATHER_MS);
        if (feed.isEmpty()) break;
      } else if (events.length > 0 || position !== before || (due && caughtUp())) {
        break;
      } else {
        await feed.arrival();
      }
    }
    yield { events, position, caughtUp: caughtUp() };
  }
}

interface Dependencies {
  connections: Connections;
  known: KnownEvents;
  /** How long nothing may be heard when a subscription is opened, in milliseconds. */
  deadlineMs: number;
  logger: Logger | undefined;
}

/** Subscriptions that outlive their connection: they go on after the last position that was handed out, until aborted. */
export function createSubscribe({ connections, known, deadlineMs, logger }: Dependencies): EventStore['subscribe'] {
  const { requiresLeader, closed } = connections;

  return async function* subscribe({ after, batchSize, signal }) {
    let position = after;
    for (let failures = 0; !signal.aborted; failures += 1) {
      const connection = connections.current();
      let feed: Feed | undefined;
      try {
        feed = await openFeed(connection, { after: position, requiresLeader, confirmationMs: deadlineMs, signal: AbortSignal.any([signal, closed]) });
        for await (const batch of batches(feed, { batchSize, position, known })) {
          ({ position } = batch);
          failures = 0;
          yield batch;
          if (signal.aborted) return;
        }
      } catch (error) {
        if (signal.aborted) return;
        if (closed.aborted) throw closed.reason;
        if (connection.silentMs() >= deadlineMs) connections.replace(connection);
        logger?.warn({ err: error, after: position }, 'the subscription to the event store broke off; resuming');
      } finally {
        feed?.stop();
      }
      await delay(backOff(failures), undefined, { signal }).catch(() => undefined);
    }
  };
}
