import { LIMITS } from '../../shared/limits.ts';
import {
  bytesOf,
  type EventBatch,
  type Position,
  type StoredEvent,
} from '../../shared/ports/eventStore.ts';
import type { Feed } from './feed.ts';
import type { KnownEvents } from './knownEvents.ts';
import type { LogView } from './logView.ts';

/**
 * While more is on its way, a batch that is not full waits so long for the next message, and so
 * long in all: full batches make a rebuild fast.
 */
const BEHIND = { pauseMs: 10, longestMs: 250 };
const BURST = { pauseMs: 2, longestMs: 50 };
/** After so long without a message the log itself is looked at. */
const QUIET_MS = 1_000;

interface BatchOptions {
  batchSize: number;
  /** Where the feed begins. */
  position: Position | undefined;
  known: KnownEvents;
  view: LogView;
}

/** Batches of one feed; ends only by throwing what ended the feed. */
export async function* batches(
  feed: Feed,
  { batchSize, position, known, view }: BatchOptions,
): AsyncGenerator<Omit<EventBatch, 'checkpoint'>, never> {
  let live = false;
  /** False after a backlog: nobody says when it is over, so the log is asked. */
  let upToDate = true;
  let said = true;
  // An event that was acknowledged here may still be on its way: until it has come, nothing has
  // caught up with it.
  const caughtUp = (): boolean =>
    live && upToDate && feed.isEmpty() && (position ?? '') >= (known.lastWritten() ?? '');

  /**
   * Waits for more while more is on its way. Resolves false when the batch should go out as it is.
   */
  async function gathers(begun: number, backlog: boolean): Promise<boolean> {
    if (live && !backlog) return false;
    // A backlog that is just met may be a burst; one that was not over with the last batch is worth
    // the wait.
    const { pauseMs, longestMs } = live && upToDate ? BURST : BEHIND;
    const left = begun + longestMs - performance.now();
    return left > 0 && (await feed.arrival(Math.min(left, pauseMs)));
  }

  for (;;) {
    const events: StoredEvent[] = [];
    let bytes = 0;
    const before = position;
    // Nobody tells a live consumer that it has fallen behind; that as much waits as is kept for it
    // does, until the end is reached.
    const backlog: boolean = feed.isFull() || !upToDate;
    let begun: number | undefined;
    let due = false;
    while (events.length < batchSize && bytes < LIMITS.store.batchBytes) {
      const step = feed.take();
      if (step?.kind === 'event') {
        events.push(step.event);
        bytes += bytesOf(step.event);
        ({ position } = step.event);
      } else if (step?.kind === 'checkpoint') {
        // A checkpoint may lie before the last event.
        if (
          (step.position === undefined || step.position > (position ?? '')) &&
          (await view.holds(step.position))
        )
          ({ position } = step);
      } else if (step) {
        live = true;
        due = true;
      } else if (events.length > 0 || position !== before) {
        if (!(await gathers((begun ??= performance.now()), backlog))) break;
      } else if ((due || !said) && caughtUp()) {
        break;
      } else if (!(await feed.arrival(QUIET_MS)) && live) {
        position = await view.considered(position);
        upToDate ||= await view.isEnd(position);
      }
    }
    if (live && (backlog || events.length === batchSize || bytes >= LIMITS.store.batchBytes))
      upToDate = feed.isEmpty() && (await view.isEnd(position));
    said = caughtUp();
    yield { events, position, caughtUp: said };
  }
}
