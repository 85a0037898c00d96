import { isTurnlogError } from '../../lib/errors/turnlogError.ts';
import { headOf, type StreamHead } from '../append.ts';
import { decodeEvent } from '../codec.ts';
import type { EventStore, ReadOptions, StoredEvent } from '../../ports/eventStore.ts';

/** Concurrent reads: a cluster answers each in about a millisecond. */
const CONCURRENT_READS = 50;

/** A stream's former head, saved outside the log. */
export interface SavedHead extends StreamHead {
  stream: string;
}

/** How a stream lost its saved head. */
type HeadLoss = 'deleted' | 'cut' | 'rewritten';

export interface LostHead {
  head: SavedHead;
  loss: HeadLoss;
  /** The revision of the stream's last event; undefined when it has none. */
  revision: number | undefined;
}

export interface HeadComparison {
  compared: number;
  lost: Record<HeadLoss, number>;
  first: LostHead | undefined;
}

interface Comparing {
  store: Pick<EventStore, 'readStream'>;
  heads: AsyncIterable<SavedHead>;
  signal: AbortSignal;
  onProgress: (compared: number) => void;
}

const hashOf = (stored: StoredEvent): string | undefined => {
  try {
    return headOf(decodeEvent(stored)).hash;
  } catch {
    return undefined;
  }
};

/** Reads the first matching event, if any. */
const readFirst = (
  store: Comparing['store'],
  stream: string,
  options: Omit<ReadOptions, 'limit'>,
): Promise<StoredEvent | undefined> =>
  store.readStream(stream, { ...options, limit: 1 }).then(
    ([event]) => event,
    (error: unknown) => {
      // Deleted and hidden events count as missing.
      if (isTurnlogError(error, 'stream_damaged')) return undefined;
      throw error;
    },
  );

/** Compares the event at the saved revision, since the stream may have grown. */
async function compareHead(
  store: Comparing['store'],
  head: SavedHead,
): Promise<LostHead | undefined> {
  const { stream, revision, hash } = head;
  const current = await readFirst(store, stream, { direction: 'forwards', from: revision });
  if (current?.revision === revision && hashOf(current) === hash) return undefined;
  const last = await readFirst(store, stream, { direction: 'backwards' });
  const loss = current?.revision === revision ? 'rewritten' : last ? 'cut' : 'deleted';
  return { head, loss, revision: last?.revision };
}

/**
 * Compares saved heads with a log: counts the streams that still contain theirs, and what happened
 * to the others. Ends early when the signal aborts. Memory does not grow with the number of heads.
 * Throws `store_unavailable`, and what reading the heads throws.
 */
export async function compareHeads({
  store,
  heads,
  signal,
  onProgress,
}: Comparing): Promise<HeadComparison> {
  const lost: HeadComparison['lost'] = { deleted: 0, cut: 0, rewritten: 0 };
  const result: HeadComparison = { compared: 0, lost, first: undefined };

  async function compare(batch: readonly SavedHead[]): Promise<void> {
    for (const lostHead of await Promise.all(batch.map((head) => compareHead(store, head)))) {
      result.compared += 1;
      if (!lostHead) continue;
      lost[lostHead.loss] += 1;
      result.first ??= lostHead;
    }
    onProgress(result.compared);
  }

  let pending: SavedHead[] = [];
  for await (const head of heads) {
    if (signal.aborted) return result;
    pending.push(head);
    if (pending.length < CONCURRENT_READS) continue;
    await compare(pending);
    pending = [];
  }
  await compare(pending);
  return result;
}
