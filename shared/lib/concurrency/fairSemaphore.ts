import { noRoom } from '../errors/capacityError.ts';
import { createPlaces, type Asked, type Place, type Room } from './capacity.ts';
import { waitInLine, type Patience } from './acquireWithTimeout.ts';

interface Waiter {
  asked: Asked;
  admit: (place: Place) => void;
}

/** How long somebody waits, and what ends the wait sooner. */
type Bounds = Omit<Patience, 'late'>;

export interface FairLine {
  /** Waits for a place. Errors: `rate_limited`, `overloaded`, the signal's reason. */
  enter(asked: Asked, bounds: Bounds): Promise<Place>;
  /** A place that is there without a wait. */
  tryEnter(asked: Asked): Place | undefined;
  /** Gives a place, whether there is room or not, and whoever waits. */
  take(asked: Asked): Place;
  /** How many are in. */
  taken(): number;
  /** Whether anybody waits. */
  isBusy(): boolean;
}

/**
 * A line for places in which accounts take turns, each with its own oldest first: whoever has had a
 * place goes behind all other accounts that wait. An account that has used up its share keeps nobody
 * back. When the next one's turn has come and it is too large for what is left, what becomes free is kept
 * for it, so that smaller ones can't pass it for ever; they go on in the rest.
 */
export function createFairLine(all: Room, share?: Room): FairLine {
  const places = createPlaces(all, share);
  /** Those who wait, by account; the account whose turn it is comes first. */
  const waiting = new Map<string, Set<Waiter>>();
  /** Bytes that are kept for one who waits. */
  let kept = 0;

  function leaveLine(waiter: Waiter): void {
    const line = waiting.get(waiter.asked.account_id);
    line?.delete(waiter);
    if (line?.size === 0) waiting.delete(waiter.asked.account_id);
  }

  /** Lets in whoever fits. An account that is set again comes up again, after all others. */
  function letIn(): void {
    kept = 0;
    for (const [account_id, line] of waiting) {
      if (places.taken() >= all.places) return;
      const first = line.values().next().value!;
      const full = places.fullFor(first.asked, kept);
      if (full === 'process' && kept === 0) kept = first.asked.bytes;
      if (full !== undefined) continue;
      waiting.delete(account_id);
      line.delete(first);
      if (line.size > 0) waiting.set(account_id, line);
      first.admit(take(first.asked));
    }
  }

  function take(asked: Asked): Place {
    const place = places.take(asked);
    return {
      resize(bytes) {
        const resized = place.resize(bytes, kept);
        if (resized && waiting.size > 0) letIn();
        return resized;
      },
      leave() {
        place.leave();
        if (waiting.size > 0) letIn();
      },
    };
  }

  /** Whoever waits had no room, or what is kept for one of them is not for this one. */
  const fullFor = (asked: Asked) => places.fullFor(asked, kept);

  function tryEnter(asked: Asked): Place | undefined {
    if (waiting.has(asked.account_id) || fullFor(asked) !== undefined) return undefined;
    return take(asked);
  }

  async function wait(asked: Asked, bounds: Bounds): Promise<Place> {
    let place: Place | undefined;
    const join = (admit: () => void): (() => void) => {
      const waiter: Waiter = {
        asked,
        admit: (given) => {
          place = given;
          admit();
        },
      };
      const line = waiting.get(asked.account_id) ?? new Set();
      waiting.set(asked.account_id, line.add(waiter));
      return () => {
        leaveLine(waiter);
        letIn();
      };
    };
    await waitInLine(join, { ...bounds, late: () => noRoom(places.fullFor(asked)) });
    return place!;
  }

  return {
    enter: async (asked, bounds) => {
      bounds.signal.throwIfAborted();
      const place = tryEnter(asked);
      if (place) return place;
      const isFirst = !waiting.has(asked.account_id);
      if (isFirst && kept === 0 && places.taken() < all.places && fullFor(asked) === 'process')
        kept = asked.bytes;
      return wait(asked, bounds);
    },
    tryEnter,
    take,
    taken: places.taken,
    isBusy: () => waiting.size > 0,
  };
}
