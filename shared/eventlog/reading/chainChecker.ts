import { LRUCache } from 'lru-cache';
import { isTurnlogError } from '../../lib/errors/turnlogError.ts';
import type { EventLog, StoredEvent } from '../../ports/eventStore.ts';
import { decodeEvent } from '../codec.ts';
import type { RecordedEvent } from '../event.ts';
import { chainFault, writtenHash, type Link } from '../hashChain.ts';

/** Stream heads held in memory; the heads of other streams are read again. */
const REMEMBERED_HEADS = 50_000;

const linkOf = ({ revision, metadata }: RecordedEvent): Link => ({ revision, hash: metadata.hash });

/**
 * Checks the events of a whole log in order: returns why an event does not continue its stream's
 * chain, undefined when it does. Synchronous when the previous event is in memory. Memory does not
 * grow with the log. Throws `store_unavailable`.
 */
export function createChainChecker(
  log: Pick<EventLog, 'readStream'>,
): (stored: StoredEvent) => Promise<string | undefined> | string | undefined {
  const heads = new LRUCache<string, Link>({ max: REMEMBERED_HEADS });

  async function readBefore({ stream, revision }: StoredEvent): Promise<Link | undefined> {
    const [previous] = await log
      .readStream(stream, { direction: 'backwards', from: revision - 1, limit: 1 })
      .catch((error: unknown) => {
        // Deleted and hidden events count as missing.
        if (isTurnlogError(error, 'stream_damaged')) return [];
        throw error;
      });
    return previous && linkOf(decodeEvent(previous));
  }

  function faultAfter(previous: Link | undefined, stored: StoredEvent): string | undefined {
    try {
      const hash = writtenHash(stored, previous);
      if (hash !== undefined) {
        heads.set(stored.stream, { revision: stored.revision, hash });
        return undefined;
      }
      const recorded = decodeEvent(stored);
      heads.set(stored.stream, linkOf(recorded));
      return chainFault(recorded, previous);
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
