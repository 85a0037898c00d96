import { LRUCache } from 'lru-cache';
import { isErasure } from '../eventTypes.ts';
import { isTurnlogError } from '../../lib/errors/turnlogError.ts';
import type { EventLog } from '../../ports/eventStore.ts';

/** Streams whose end is kept at hand; that of others is read again. */
const REMEMBERED_STREAMS = 10_000;

type Read = Pick<EventLog, 'readStream'>;

/** True where a stream that can be read ends with its erasure. Errors: `store_unavailable`. */
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
 * Tells whether a stream says that it was erased. Whoever can write the log could name a destroyed
 * key in any box: a text is erased where both are so. Errors of what it gives: `store_unavailable`.
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
