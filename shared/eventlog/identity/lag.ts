import { decodeEvent } from '../codec.ts';
import type { Clock } from '../../ports/clock.ts';
import type { EventBatch, Position, StoredEvent } from '../../ports/eventStore.ts';
import type { ProjectorLag } from '../../ports/readModels.ts';

/**
 * The end of the log is normally reached within about a second, even if it is an event of another
 * program or has just been written.
 */
const REACHED_WITHIN_MS = 2_000;

/** Measures how far a follower is behind the log. */
export interface LagTracker {
  /** Starts a batch: its events are read but not processed yet. */
  startBatch(batch: EventBatch): void;
  /** Marks the current batch as processed. */
  finishBatch(): void;
  /** The position up to which everything is processed. */
  position(): Position | undefined;
  resumeAt(position: Position | undefined): void;
  /**
   * `ms`: the age of the oldest unprocessed event, 0 when there is none. The age is measured
   * against the writer's clock, but is at least the time since the event was read here; if the
   * writer's clock is ahead, the true age is higher. For an event that was not read yet: how long
   * this or an earlier end of the log has been unreachable. `events`: the number of events read
   * and not processed; null when there are also unread events.
   */
  measure(end: Position | undefined): ProjectorLag;
}

/** Undefined for an event that can't be decoded. */
function recordedAt(event: StoredEvent): number | undefined {
  try {
    return Date.parse(decodeEvent(event).metadata.recorded_at);
  } catch {
    return undefined;
  }
}

/** `elapsed` is a monotonic clock in milliseconds: the system clock may be adjusted. */
export function createLagTracker(
  clock: Clock,
  elapsed = (): number => Math.round(performance.now()),
): LagTracker {
  let position: Position | undefined;
  let batch: EventBatch | undefined;
  /** At least as old as the oldest unprocessed event. */
  let oldest: StoredEvent | undefined;
  let oldestSince = 0;
  let hasBeenUpToDate = false;
  /** An end of the log that is not reached yet, and since when. */
  let unreachedEnd: { end: Position; since: number } | undefined;
  const createdAt = elapsed();

  function setOldest(event: StoredEvent | undefined): void {
    if (event !== oldest) oldestSince = elapsed();
    oldest = event;
  }

  const isReached = (end: Position | undefined): boolean =>
    end === undefined || (position !== undefined && position >= end);

  /** How long an end of the log has been unreachable although all events read are processed. */
  function unreachedMs(end: Position | undefined): number {
    if (end === undefined || isReached(end)) {
      hasBeenUpToDate = true;
      unreachedEnd = undefined;
      return 0;
    }
    if (!hasBeenUpToDate) return elapsed() - createdAt;
    if (unreachedEnd === undefined || isReached(unreachedEnd.end))
      unreachedEnd = { end, since: elapsed() };
    const ms = elapsed() - unreachedEnd.since;
    return ms >= REACHED_WITHIN_MS ? ms : 0;
  }

  return {
    startBatch(next) {
      batch = next;
      setOldest(oldest ?? next.events[0]);
    },
    finishBatch() {
      position = batch?.position ?? position;
      setOldest(batch?.caughtUp ? undefined : (batch?.events.at(-1) ?? oldest));
      hasBeenUpToDate ||= batch?.caughtUp === true;
      batch = undefined;
    },
    position: () => position,
    resumeAt(at) {
      position = at;
    },
    measure(end) {
      if (!oldest) {
        const ms = unreachedMs(end);
        return { events: ms === 0 ? 0 : null, ms };
      }
      const recorded = recordedAt(oldest);
      const ms =
        recorded === undefined
          ? elapsed() - createdAt
          : Math.max(elapsed() - oldestSince, clock.now() - recorded);
      return { events: batch?.caughtUp ? batch.events.length : null, ms };
    },
  };
}
