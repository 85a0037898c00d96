import { isTurnlogError } from '../../lib/errors/turnlogError.ts';
import { headOf, type StreamHead } from '../append.ts';
import { decodeEvent } from '../codec.ts';
import type { EventStore, ReadOptions, StoredEvent } from '../../ports/eventStore.ts';

/** Reads at the same time: a cluster answers each in a millisecond or so. */
const CONCURRENT_READS = 50;

/** The head that a stream had, kept outside the log. */
export interface SavedHead extends StreamHead {
  stream: string;
}

/** What happened to a stream that no longer holds the head it had. */
export type HeadLoss = 'deleted' | 'cut' | 'rewritten';

export interface LostHead {
  head: SavedHead;
  loss: HeadLoss;
  /** Of the stream's last event now; undefined where it has none. */
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

/** The first event that is found, if any. */
const readFirst = (
  store: Comparing['store'],
  stream: string,
  options: Omit<ReadOptions, 'limit'>,
): Promise<StoredEvent | undefined> =>
  store.readStream(stream, { ...options, limit: 1 }).then(
    ([event]) => event,
    (error: unknown) => {
      // What was deleted or is hidden is missing.
      if (isTurnlogError(error, 'stream_damaged')) return undefined;
      throw error;
    },
  );

/** Streams may have grown: it is the event at the kept revision that must have the kept hash. */
async function compareHead(
  store: Comparing['store'],
  head: SavedHead,
): Promise<LostHead | undefined> {
  const { stream, revision, hash } = head;
  const there = await readFirst(store, stream, { direction: 'forwards', from: revision });
  if (there?.revision === revision && hashOf(there) === hash) return undefined;
  const last = await readFirst(store, stream, { direction: 'backwards' });
  const loss = there?.revision === revision ? 'rewritten' : last ? 'cut' : 'deleted';
  return { head, loss, revision: last?.revision };
}

/**
 * Looks for heads that were kept outside in a log: which streams still hold theirs, and what
 * happened to the others. Ends early when the signal aborts. Memory does not grow with their
 * number. Errors: `store_unavailable`, those of reading the heads.
 */
export async function compareHeads({
  store,
  heads,
  signal,
  onProgress,
}: Comparing): Promise<HeadComparison> {
  const lost: HeadComparison['lost'] = { deleted: 0, cut: 0, rewritten: 0 };
  const result: HeadComparison = { compared: 0, lost, first: undefined };

  async function compare(some: readonly SavedHead[]): Promise<void> {
    for (const one of await Promise.all(some.map((head) => compareHead(store, head)))) {
      result.compared += 1;
      if (!one) continue;
      lost[one.loss] += 1;
      result.first ??= one;
    }
    onProgress(result.compared);
  }

  let waiting: SavedHead[] = [];
  for await (const head of heads) {
    if (signal.aborted) return result;
    waiting.push(head);
    if (waiting.length < CONCURRENT_READS) continue;
    await compare(waiting);
    waiting = [];
  }
  await compare(waiting);
  return result;
}
