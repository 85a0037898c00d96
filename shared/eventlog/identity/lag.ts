import { decodeEvent } from '../codec.ts';
import type { Clock } from '../../ports/clock.ts';
import type { EventBatch, Position, StoredEvent } from '../../ports/eventStore.ts';
import type { ProjectorLag } from '../../ports/readModels.ts';

/**
 * An end of the log that is an event of others, or has just been written, is reached within about a
 * second.
 */
const REACHED_WITHIN_MS = 2_000;

/** How far a follower of the log is behind it, by what it knows itself. */
export interface LagTracker {
  /** Events that were read and are not dealt with yet. */
  startBatch(batch: EventBatch): void;
  /** The batch read last is dealt with now. */
  finishBatch(): void;
  /** Everything up to here is dealt with. */
  position(): Position | undefined;
  resumeAt(position: Position | undefined): void;
  /**
   * `ms`: the age of the oldest event that is not dealt with, 0 where there is none. It is the age
   * by the clock of whoever wrote the event, and never less than the time for which the event has
   * been known here: where that clock is ahead of this one, the true age is more. Where the event
   * has not been read, the time for which this end of the log, or an earlier one, has been out of
   * reach. `events`: how many are read and not dealt with; null where there are some that
   * were not read.
   */
  measure(end: Position | undefined): ProjectorLag;
}

/** Undefined for an event that can't be understood. */
function recordedAt(event: StoredEvent): number | undefined {
  try {
    return Date.parse(decodeEvent(event).metadata.recorded_at);
  } catch {
    return undefined;
  }
}

/** `elapsed` is a monotonic time in milliseconds: a wall clock may be set. */
export function createLagTracker(
  clock: Clock,
  elapsed = (): number => Math.round(performance.now()),
): LagTracker {
  let position: Position | undefined;
  let batch: EventBatch | undefined;
  /** At least as old as the oldest event that is not dealt with. */
  let oldest: StoredEvent | undefined;
  let oldestSince = 0;
  let everUpToDate = false;
  /** An end that was not reached, and since when that is known. */
  let missing: { end: Position; since: number } | undefined;
  const begun = elapsed();

  function hold(event: StoredEvent | undefined): void {
    if (event !== oldest) oldestSince = elapsed();
    oldest = event;
  }

  const isReached = (end: Position | undefined): boolean =>
    end === undefined || (position !== undefined && position >= end);

  /** How long an end of the log has been out of reach, though nothing that was read is left. */
  function outOfReach(end: Position | undefined): number {
    if (end === undefined || isReached(end)) {
      everUpToDate = true;
      missing = undefined;
      return 0;
    }
    if (!everUpToDate) return elapsed() - begun;
    if (missing === undefined || isReached(missing.end)) missing = { end, since: elapsed() };
    const ms = elapsed() - missing.since;
    return ms >= REACHED_WITHIN_MS ? ms : 0;
  }

  return {
    startBatch(next) {
      batch = next;
      hold(oldest ?? next.events[0]);
    },
    finishBatch() {
      position = batch?.position ?? position;
      hold(batch?.caughtUp ? undefined : (batch?.events.at(-1) ?? oldest));
      everUpToDate ||= batch?.caughtUp === true;
      batch = undefined;
    },
    position: () => position,
    resumeAt(at) {
      position = at;
    },
    measure(end) {
      if (!oldest) {
        const ms = outOfReach(end);
        return { events: ms === 0 ? 0 : null, ms };
      }
      const recorded = recordedAt(oldest);
      const ms =
        recorded === undefined
          ? elapsed() - begun
          : Math.max(elapsed() - oldestSince, clock.now() - recorded);
      return { events: batch?.caughtUp ? batch.events.length : null, ms };
    },
  };
}
