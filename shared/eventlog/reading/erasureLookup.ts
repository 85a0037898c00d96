import { LRUCache } from 'lru-cache';
import { isErasure } from '../eventTypes.ts';
import type { EventLog } from '../../ports/eventStore.ts';
import { entriesUpTo } from '../../lib/memory/entriesUpTo.ts';
import { readPresentEvents } from './readPresentEvents.ts';

/** Streams held in memory; the ends of others are read again. */
export const REMEMBERED_STREAMS = 20_000;

type Read = Pick<EventLog, 'readStream'>;

/** True when a readable stream ends with its erasure. Throws `store_unavailable`. */
export async function endsWithErasure(log: Read, stream: string): Promise<boolean> {
  const [last] = await readPresentEvents(log, stream, { direction: 'backwards', limit: 1 });
  return last !== undefined && isErasure(last.type);
}

/** Which streams are erased, as far as it is known. */
interface ErasureLookup {
  /** Reads the stream's last event unless the answer is known. Throws `store_unavailable`. */
  isErased(stream: string): boolean | Promise<boolean>;
  /** Reads the last event again if the stream was not erased. Throws `store_unavailable`. */
  isErasedNow(stream: string): Promise<boolean>;
  /** Records whether a stream is erased. An erasure is permanent, so it is never taken back. */
  note(stream: string, erased: boolean): void;
  /** Reads the last events of all streams again that were not erased. */
  recheckAll(): void;
}

/**
 * Creates a cached check whether streams record their erasure. Neither a destroyed key nor an
 * existing one says so: a writer to the log could name a destroyed key in a ciphertext,
 * and a backup brings destroyed keys back. A stream that was not erased stays so in the cache until
 * `note` reports its erasure.
 */
export function createErasureLookup(log: Read): ErasureLookup {
  const erasureByStream = new LRUCache<string, boolean>(entriesUpTo(REMEMBERED_STREAMS));
  let rechecks = 0;

  function note(stream: string, erased: boolean): void {
    if (erasureByStream.get(stream) !== true) erasureByStream.set(stream, erased);
  }
  async function read(stream: string): Promise<boolean> {
    const rechecksBefore = rechecks;
    const erased = await endsWithErasure(log, stream);
    if (erased || rechecks === rechecksBefore) note(stream, erased);
    return erasureByStream.get(stream) ?? erased;
  }
  /** Reads that many callers wait for: the last event may have a megabyte. */
  const reading = new Map<string, Promise<boolean>>();
  function readOnce(stream: string): Promise<boolean> {
    const running = reading.get(stream);
    if (running) return running;
    const started = read(stream).finally(() => {
      if (reading.get(stream) === started) reading.delete(stream);
    });
    reading.set(stream, started);
    return started;
  }
  return {
    note,
    recheckAll() {
      rechecks += 1;
      reading.clear();
      for (const [stream, erased] of erasureByStream) if (!erased) erasureByStream.delete(stream);
    },
    isErased: (stream) => erasureByStream.get(stream) ?? readOnce(stream),
    isErasedNow: async (stream) => erasureByStream.get(stream) === true || read(stream),
  };
}
