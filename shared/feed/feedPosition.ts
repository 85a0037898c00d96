import type { Checkpoint } from '../ports/eventStore.ts';
import { formatCursor, type LogStart } from './cursor.ts';
import type { LoggedEvent } from './loggedEvents.ts';
import { LIMITS } from '../limits.ts';

/** The position of a follower. */
export interface FeedPosition {
  /** Where to resume reading the log; undefined for its beginning. */
  resumesAfter: LogStart | undefined;
  /** The cursor of that position. */
  cursor: string | undefined;
  /**
   * Every event up to here was scanned. This position can be later than `resumesAfter`; empty for
   * the beginning of the log.
   */
  scannedTo: string;
}

/** Events read for a follower, and the position reached. */
export interface FeedSlice {
  events: readonly LoggedEvent[];
  position: FeedPosition;
  /** True when there were no further events. */
  caughtUp: boolean;
}

/** The position after one of Turnlog's events when every event up to `passed` was scanned. */
export const positionAfter = (
  checkpoint: Checkpoint,
  passed: string = checkpoint.position,
): FeedPosition => ({
  resumesAfter: checkpoint,
  cursor: formatCursor(checkpoint),
  scannedTo: passed,
});

/** The events that fit into one page of a follower after those it holds, and at least one in all. */
export function firstPage(
  events: readonly LoggedEvent[],
  held = { events: 0, bytes: 0 },
): readonly LoggedEvent[] {
  const { pageEvents, pageBytes } = LIMITS.feed;
  let { bytes } = held;
  const count = events.findIndex((event, index) => {
    const before = held.events + index;
    bytes += event.bytes;
    return before > 0 && (before >= pageEvents || bytes > pageBytes);
  });
  return count < 0 ? events : events.slice(0, count);
}
