import { LIMITS } from '../limits.ts';
import type { LoggedEvent } from './loggedEvents.ts';

/** The latest events of the log, as many as are kept in memory. */
export interface RecentEvents {
  add(events: readonly LoggedEvent[]): void;
  /** The kept events after a position; undefined where some that came after it are kept no more. */
  after(position: string): readonly LoggedEvent[] | undefined;
}

/** `floor`: the position after which events are added, all of them. */
export function createRecentEvents(
  floor: string,
  { recentEvents, recentBytes } = LIMITS.feed as { recentEvents: number; recentBytes: number },
): RecentEvents {
  let kept: LoggedEvent[] = [];
  let bytes = 0;
  let from = floor;

  const firstAfter = (position: string): number => {
    let [low, high] = [0, kept.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (kept[middle]!.stored.position > position) high = middle;
      else low = middle + 1;
    }
    return low;
  };

  return {
    add(events) {
      for (const event of events) {
        kept.push(event);
        bytes += event.bytes;
      }
      let gone = 0;
      for (; kept.length - gone > recentEvents || bytes > recentBytes; gone += 1)
        bytes -= kept[gone]!.bytes;
      if (gone === 0) return;
      from = kept[gone - 1]!.stored.position;
      kept = kept.slice(gone);
    },
    after: (position) => (position < from ? undefined : kept.slice(firstAfter(position))),
  };
}
