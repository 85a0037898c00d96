import { isTurnlogError } from '../../lib/errors/turnlogError.ts';
import type { EventLog, ReadOptions, StoredEvent } from '../../ports/eventStore.ts';

/**
 * Reads events of a stream, of which deleted and hidden ones count as missing: none where the store reports
 * damage. Throws `store_unavailable`.
 */
export const readPresentEvents = (
  log: Pick<EventLog, 'readStream'>,
  stream: string,
  options: ReadOptions,
): Promise<StoredEvent[]> =>
  log.readStream(stream, options).catch((error: unknown) => {
    if (isTurnlogError(error, 'stream_damaged')) return [];
    throw error;
  });
