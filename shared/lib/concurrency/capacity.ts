import { noRoom } from '../errors/capacityError.ts';

/** What a process has to give away, or the most of it that one account may have. */
export interface Room {
  places: number;
  bytes: number;
}

/** Who wants a place, and how large. */
export interface Asked {
  account_id: string;
  bytes: number;
  /** What the account may have at a time, where that is less than its share. */
  most?: Room;
}

/** Whose room is taken up; undefined where there is room. */
export type Full = 'process' | 'account' | undefined;

export interface Place {
  /**
   * Makes the place larger or smaller, when so many bytes are kept for somebody else. False, and
   * nothing changed, where there is no room.
   */
  resize(bytes: number, keptBytes?: number): boolean;
  /** Gives the place back; a second time changes nothing. */
  leave(): void;
}

export interface Places {
  /**
   * Whether there is room, when so many bytes are kept for somebody else. What is larger than all
   * room there is has its place alone.
   */
  fullFor(asked: Asked, keptBytes?: number): Full;
  /** Gives a place, whether there is room or not. */
  take(asked: Asked): Place;
  /** Gives a place where there is room. Errors: `rate_limited` (the account), `overloaded`. */
  claim(asked: Asked): Place;
  /** How many are given away. */
  taken(): number;
}

const NO_MORE: Room = { places: Infinity, bytes: Infinity };

const half = ({ places, bytes }: Room): Room => ({ places: places / 2, bytes: bytes / 2 });

const fits = (taken: Room, all: Room, bytes: number): boolean =>
  taken.places === 0 || (taken.places + 1 <= all.places && taken.bytes + bytes <= all.bytes);

/**
 * Counts places and bytes given away, of the process and of each account. An account has its share
 * of what the others leave: a half where it is alone, a third each where there are two, and so on.
 * So there is room left for one who comes with nothing, however many others take all they can.
 */
export function createPlaces(all: Room, share = half(all)): Places {
  const process: Room = { places: 0, bytes: 0 };
  const accounts = new Map<string, Room>();

  function mostOf(account: Room, most = NO_MORE): Room {
    const of = (what: keyof Room): number => {
      const others = process[what] - account[what];
      return Math.min(most[what], share[what] * (1 - others / all[what]));
    };
    return { places: of('places'), bytes: of('bytes') };
  }

  function fullFor({ account_id, most, bytes }: Asked, keptBytes = 0): Full {
    const account = accounts.get(account_id);
    if (account && !fits(account, mostOf(account, most), bytes)) return 'account';
    const rest = { places: all.places, bytes: all.bytes - keptBytes };
    return fits(process, rest, bytes) ? undefined : 'process';
  }

  function take({ account_id, most, bytes: first }: Asked): Place {
    let bytes = first;
    let left = false;
    const account = accounts.get(account_id) ?? { places: 0, bytes: 0 };
    accounts.set(account_id, account);
    const add = (places: number, more: number): void => {
      for (const taken of [process, account]) {
        taken.places += places;
        taken.bytes += more;
      }
    };
    add(1, bytes);
    return {
      resize(wanted, keptBytes = 0) {
        const more = wanted - bytes;
        const grows = (taken: Room, limit: number): boolean =>
          more <= 0 || taken.places === 1 || taken.bytes + more <= limit;
        if (!grows(process, all.bytes - keptBytes)) return false;
        if (!grows(account, mostOf(account, most).bytes)) return false;
        bytes = wanted;
        add(0, more);
        return true;
      },
      leave() {
        if (left) return;
        left = true;
        add(-1, -bytes);
        if (account.places === 0) accounts.delete(account_id);
      },
    };
  }

  return {
    fullFor,
    take,
    claim(asked) {
      const full = fullFor(asked);
      if (full) throw noRoom(full);
      return take(asked);
    },
    taken: () => process.places,
  };
}
