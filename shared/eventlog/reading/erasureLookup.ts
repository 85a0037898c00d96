import { LRUCache } from 'lru-cache';
import { isErasure } from '../eventTypes.ts';
import { isTurnlogError } from '../../lib/errors/turnlogError.ts';
import type { EventLog } from '../../ports/eventStore.ts';

/** Erased streams held in memory; the ends of others are read again. */
const REMEMBERED_STREAMS = 10_000;

type Read = Pick<EventLog, 'readStream'>;

/** True when a readable stream ends with its erasure. Throws `store_unavailable`. */
export async function endsWithErasure({ readStream }: Read, stream: string): Promise<boolean> {
  const [last] = await readStream(stream, { direction: 'backwards', limit: 1 }).catch(
    (error: unknown) => {
      if (isTurnlogError(error, 'stream_damaged')) return [];
      throw error;
    },
  );
  return last !== undefined && isErasure(last.type);
}

/**
 * Creates a cached check whether a stream records its erasure. A destroyed key alone does not prove
 * an erasure: anyone who can write to the log could name such a key in a ciphertext. The check
 * throws `store_unavailable`.
 */
export function createErasureLookup(log: Read): (stream: string) => Promise<boolean> {
  const erased = new LRUCache<string, true>({ max: REMEMBERED_STREAMS });

  return async (stream) => {
    if (erased.has(stream)) return true;
    if (!(await endsWithErasure(log, stream))) return false;
    erased.set(stream, true);
    return true;
  };
}
