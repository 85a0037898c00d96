import type { Checkpoint } from '../ports/eventStore.ts';
import { cursorOf, type LogStart } from './cursor.ts';
import type { LoggedEvent } from './loggedEvents.ts';
import { LIMITS } from '../limits.ts';

/** How far a follower has come. */
export interface FeedPosition {
  /** Where the log is read on; its beginning without one. */
  resumesAfter: LogStart | undefined;
  /** Names that to others. */
  cursor: string | undefined;
  /** Up to here every event was looked at, which may lie beyond; empty for the beginning. */
  scannedTo: string;
}

/** What a follower has found, and where it has come with it. */
export interface FeedSlice {
  events: readonly LoggedEvent[];
  position: FeedPosition;
  /** Whether there was nothing more. */
  caughtUp: boolean;
}

/** The place behind an event of ours, when all up to a position was looked at. */
export const positionAfter = (
  checkpoint: Checkpoint,
  passed: string = checkpoint.position,
): FeedPosition => ({
  resumesAfter: checkpoint,
  cursor: cursorOf(checkpoint),
  scannedTo: passed,
});

/** As many of the events, and at least one, as are handed to a follower at a time. */
export function firstPage(
  events: readonly LoggedEvent[],
  held = { events: 0, bytes: 0 },
): readonly LoggedEvent[] {
  let { bytes } = held;
  const room = LIMITS.feed.pageEvents - held.events;
  const count = events.findIndex((event, index) => {
    if (index > 0 && (index >= room || bytes >= LIMITS.feed.pageBytes)) return true;
    bytes += event.bytes;
    return false;
  });
  return count < 0 ? events : events.slice(0, count);
}
