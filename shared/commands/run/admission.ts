import { createFairLine } from '../../fairLine.ts';
import { LIMITS } from '../../limits.ts';
import { noRoom } from '../../noRoom.ts';
import { createPlaces, type Place, type Room } from '../../places.ts';
import type { AccountLimits } from '../../domain/account/events.ts';

/** What runs of a process take up at the most. */
export interface AdmissionBounds {
  /** Runs in flight, and bytes of their prompts. */
  all: Room;
  /** The most of them that are one account's. */
  share: Room;
}

/** A run that asks for its place. */
export interface Arrival {
  /**
   * Waits for a place for a prompt of so many bytes; gives back the one it has before. Errors:
   * `rate_limited`, `overloaded`, the signal's reason.
   */
  enter(bytes: number, waitMs: number, signal: AbortSignal): Promise<void>;
  /** Takes so many bytes in all; false where they are not to be had without a wait. */
  grow(bytes: number): boolean;
  /** To be called when the run is over, however it ended. */
  leave(): void;
}

export interface Admission {
  /**
   * The run is here, holds so many bytes and has no place yet. Errors: `rate_limited`,
   * `overloaded`.
   */
  arrive(accountId: string, bytes: number, limits: AccountLimits): Arrival;
  /** Runs that have a place. */
  inFlight(): number;
  /** Runs that have none yet. */
  waiting(): number;
}

const half = ({ places, bytes }: Room): Room => ({ places: places / 2, bytes: bytes / 2 });

/**
 * Lets runs in as far as the process and their accounts have room for them, the accounts in turn
 * (see createFairLine). Those without a place hold their input, so there is an end to them as well.
 */
export function createAdmission({ all, share }: AdmissionBounds): Admission {
  const line = createFairLine(all);
  const room: Room = { places: LIMITS.run.waiting, bytes: all.bytes };
  const hall = createPlaces(room);

  function seat(account_id: string, bytes: number): Place {
    const asked = { account_id, bytes, share: half(room) };
    const full = hall.fullFor(asked);
    if (full) throw noRoom(full);
    return hall.take(asked);
  }

  return {
    arrive(account_id, held, { runs = Infinity, prompt_bytes = Infinity }) {
      const own: Room = {
        places: Math.min(runs, share.places),
        bytes: Math.min(prompt_bytes, share.bytes),
      };
      let waiting: Place | undefined = seat(account_id, held);
      let place: Place | undefined;
      const leave = (): void => {
        waiting?.leave();
        place?.leave();
        waiting = place = undefined;
      };
      return {
        async enter(bytes, waitMs, signal) {
          leave();
          waiting = seat(account_id, bytes);
          const asked = { account_id, bytes, share: own };
          place = await line.enter(asked, { waitMs, signal, late: noRoom });
          waiting.leave();
          waiting = undefined;
        },
        grow: (bytes) => place?.resize(bytes) ?? false,
        leave,
      };
    },
    inFlight: line.taken,
    waiting: hall.taken,
  };
}
