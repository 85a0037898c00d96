import { LRUCache } from 'lru-cache';
import { isTurnlogError } from '../../lib/errors/turnlogError.ts';
import type { EventLog, StoredEvent } from '../../ports/eventStore.ts';
import { decodeEvent } from '../codec.ts';
import { isErasure } from '../eventTypes.ts';
import type { RecordedEvent } from '../event.ts';
import { chainFault, writtenHash, type Link } from '../hashChain.ts';

/** Stream heads held in memory; the heads of other streams are read again. */
const REMEMBERED_HEADS = 50_000;

/** A link, and whether its event erases the stream, so that no event may follow. */
interface Head extends Link {
  erases: boolean;
}

const headOf = ({ revision, type, metadata }: RecordedEvent): Head => ({
  revision,
  hash: metadata.hash,
  erases: isErasure(type),
});

/**
 * Checks the events of a whole log in order: returns why an event does not continue its stream's
 * chain, undefined when it does. Synchronous when the previous event is in memory. Memory does not
 * grow with the log. Throws `store_unavailable`.
 */
export function createChainChecker(
  log: Pick<EventLog, 'readStream'>,
): (stored: StoredEvent) => Promise<string | undefined> | string | undefined {
  const heads = new LRUCache<string, Head>({ max: REMEMBERED_HEADS });

  async function readBefore({ stream, revision }: StoredEvent): Promise<Head | undefined> {
    const [previous] = await log
      .readStream(stream, { direction: 'backwards', from: revision - 1, limit: 1 })
      .catch((error: unknown) => {
        // Deleted and hidden events count as missing.
        if (isTurnlogError(error, 'stream_damaged')) return [];
        throw error;
      });
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
      return chainFault(recorded, previous) ?? after;
    } catch {
      return "it can't be decoded";
    }
  }

  return (stored) => {
    const head = heads.get(stored.stream);
    return head || stored.revision === 0
      ? faultAfter(head, stored)
      : readBefore(stored).then((previous) => faultAfter(previous, stored));
  };
}
