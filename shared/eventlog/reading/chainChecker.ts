import { LRUCache } from 'lru-cache';
import { readPresentEvents } from './readPresentEvents.ts';
import type { EventLog, StoredEvent } from '../../ports/eventStore.ts';
import { decodeEvent } from '../codec.ts';
import { isErasure } from '../eventTypes.ts';
import type { RecordedEvent } from '../event.ts';
import {
  findChainFault,
  claimedHashes,
  GENESIS_HASH,
  writtenHash,
  type Link,
} from '../hashChain.ts';
import { entriesUpTo } from '../../lib/memory/entriesUpTo.ts';

/** Stream heads held in memory; the heads of other streams are read again. */
const REMEMBERED_HEADS = 10_000;

/** A link, and whether its event erases the stream, so that no event may follow. */
interface Head extends Link {
  erases: boolean;
}

const headOf = ({ revision, type, metadata }: RecordedEvent): Head => ({
  revision,
  hash: metadata.hash,
  erases: isErasure(type),
});

/** Checks the events of a whole log in order. Memory does not grow with the log. */
interface ChainChecker {
  /**
   * Why an event does not continue its stream's chain; undefined when it does. Synchronous when the
   * previous event is in memory. Throws `store_unavailable`.
   */
  check(stored: StoredEvent): Promise<string | undefined> | string | undefined;
  /**
   * Takes an event whose content is checked elsewhere, if it continues the chain by the hashes that it
   * claims. Returns false for any other, which `check` has to take.
   */
  link(stored: StoredEvent): boolean;
}

/** Why the content of an event that `link` took has another hash; undefined when it has this one. */
export function findContentFault(stored: StoredEvent): string | undefined {
  try {
    const event = decodeEvent(stored);
    const { revision, metadata } = event;
    const previous = { revision: revision - 1, hash: metadata.prev_hash };
    return findChainFault(event, revision === 0 ? undefined : previous);
  } catch {
    return "it can't be decoded";
  }
}

/** Creates a checker that reads heads of streams which it has forgotten from the log. */
export function createChainChecker(log: Pick<EventLog, 'readStream'>): ChainChecker {
  const heads = new LRUCache<string, Head>(entriesUpTo(REMEMBERED_HEADS));

  async function readBefore({ stream, revision }: StoredEvent): Promise<Head | undefined> {
    const before = { direction: 'backwards', from: revision - 1, limit: 1 } as const;
    const [previous] = await readPresentEvents(log, stream, before);
    return previous && headOf(decodeEvent(previous));
  }

  function faultAfter(previous: Head | undefined, stored: StoredEvent): string | undefined {
    try {
      const after = previous?.erases === true ? 'it follows the erasure of its stream' : undefined;
      const hash = writtenHash(stored, previous);
      if (hash !== undefined) {
        const erases = isErasure(stored.type);
        heads.set(stored.stream, { revision: stored.revision, hash, erases });
        return after;
      }
      const recorded = decodeEvent(stored);
      heads.set(stored.stream, headOf(recorded));
      return findChainFault(recorded, previous) ?? after;
    } catch {
      return "it can't be decoded";
    }
  }

  return {
    check(stored) {
      const head = heads.get(stored.stream);
      return head || stored.revision === 0
        ? faultAfter(head, stored)
        : readBefore(stored).then((previous) => faultAfter(previous, stored));
    },
    link(stored) {
      const { stream, revision, type } = stored;
      const head = heads.get(stream);
      const claimed = claimedHashes(stored);
      if (!claimed || head?.erases === true || (!head && revision > 0)) return false;
      if (revision !== (head?.revision ?? -1) + 1) return false;
      if (claimed.prevHash !== (head?.hash ?? GENESIS_HASH)) return false;
      heads.set(stream, { revision, hash: claimed.hash, erases: isErasure(type) });
      return true;
    },
  };
}
