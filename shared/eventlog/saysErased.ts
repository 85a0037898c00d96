import { LRUCache } from 'lru-cache';
import { isErasure } from '../domain/events.ts';
import { isTurnlogError } from '../errors.ts';
import type { EventLog } from '../ports/eventStore.ts';

/** Streams whose end is kept at hand; that of others is read again. */
const REMEMBERED_STREAMS = 10_000;

/**
 * Tells whether a stream says that it was erased. Whoever can write the log could name a destroyed
 * key in any box: a text is erased where both are so. Errors of what it gives: `store_unavailable`.
 */
export function erasuresOf({
  readStream,
}: Pick<EventLog, 'readStream'>): (stream: string) => Promise<boolean> {
  const erased = new LRUCache<string, true>({ max: REMEMBERED_STREAMS });

  return async (stream) => {
    if (erased.has(stream)) return true;
    const [last] = await readStream(stream, { direction: 'backwards', limit: 1 }).catch(
      (error: unknown) => {
        if (isTurnlogError(error, 'stream_damaged')) return [];
        throw error;
      },
    );
    if (!last || !isErasure(last.type)) return false;
    erased.set(stream, true);
    return true;
  };
}
