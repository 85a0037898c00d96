import { createPlaces, type Asked, type Full, type Place, type Room } from './places.ts';
import { waitInLine, type Patience } from './waitInLine.ts';

interface Waiter {
  asked: Asked;
  admit: (place: Place) => void;
}

export interface FairLine {
  /**
   * Waits for a place. Errors: `late` of the patience, told whose room was full, and the signal's
   * reason.
   */
  enter(
    asked: Asked,
    patience: Omit<Patience, 'late'> & { late: (full: Full) => Error },
  ): Promise<Place>;
  /** How many are in. */
  taken(): number;
}

/**
 * A line in which accounts take turns, each with its own oldest first: whoever has had a place goes
 * behind all other accounts that wait. An account that has used up its share keeps nobody back.
 * When the next one's turn has come and it is too large for what is left, what becomes free is kept
 * for it, so that smaller ones can't pass it for ever; they go on in the rest.
 */
export function createFairLine(all: Room): FairLine {
  const places = createPlaces(all);
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

  async function wait(asked: Asked, { waitMs, signal, late }: Parameters<FairLine['enter']>[1]) {
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
    await waitInLine(join, { waitMs, signal, late: () => late(places.fullFor(asked)) });
    return place!;
  }

  return {
    enter: async (asked, patience) => {
      patience.signal.throwIfAborted();
      const isFirst = !waiting.has(asked.account_id);
      // Whoever waits had no room, or what is kept for one of them is not for this one.
      const full = places.fullFor(asked, kept);
      if (isFirst && full === undefined) return take(asked);
      if (isFirst && full === 'process' && kept === 0 && places.taken() < all.places)
        kept = asked.bytes;
      return wait(asked, patience);
    },
    taken: places.taken,
  };
}
