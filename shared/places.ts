/** What a process has to give away, or the most of it that one account may have. */
export interface Room {
  places: number;
  bytes: number;
}

/** Who wants a place, and how large. */
export interface Asked {
  account_id: string;
  bytes: number;
  /** The most that the account may have at a time. */
  share: Room;
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
  /** How many are given away. */
  taken(): number;
}

const fits = (taken: Room, all: Room, bytes: number): boolean =>
  taken.places === 0 || (taken.places < all.places && taken.bytes + bytes <= all.bytes);

/** Counts places and bytes given away, of the process and of each account. */
export function createPlaces(all: Room): Places {
  const process: Room = { places: 0, bytes: 0 };
  const accounts = new Map<string, Room>();

  function give({ account_id, share, bytes: first }: Asked): Place {
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
        const grows = (taken: Room, most: number): boolean =>
          more <= 0 || taken.places === 1 || taken.bytes + more <= most;
        if (!grows(process, all.bytes - keptBytes) || !grows(account, share.bytes)) return false;
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
    fullFor({ account_id, share, bytes }, keptBytes = 0) {
      const account = accounts.get(account_id);
      if (account && !fits(account, share, bytes)) return 'account';
      const rest = { places: all.places, bytes: all.bytes - keptBytes };
      return fits(process, rest, bytes) ? undefined : 'process';
    },
    take: give,
    taken: () => process.places,
  };
}
