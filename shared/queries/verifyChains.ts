import { LRUCache } from 'lru-cache';
import { decodeEvent } from '../eventlog/codec.ts';
import type { RecordedEvent } from '../eventlog/event.ts';
import { chainFault } from '../eventlog/hashChain.ts';
import type { EventStore, Position, StoredEvent } from '../ports/eventStore.ts';

const BATCH_SIZE = 1_000;
/** Heads of streams that are kept at hand; those of others are read again. */
const REMEMBERED_HEADS = 50_000;

interface Link {
  revision: number;
  hash: string;
}

export interface VerifyProgress {
  events: number;
  /** Where a later verification can go on. */
  position: Position | undefined;
}

export interface Misfit {
  stream: string;
  revision: number;
  id: string;
  position: Position;
  /** Why it does not fit: `its hash does not match its content`. */
  reason: string;
}

interface Verification {
  store: Pick<EventStore, 'readStream' | 'subscribe'>;
  /** Verify only what comes after; everything when absent. */
  after: Position | undefined;
  signal: AbortSignal;
  onProgress: (progress: VerifyProgress) => void;
}

/** The event before this one in its stream. A missing one makes the chain fault that it should. */
async function previousOf(store: Verification['store'], { stream, revision }: StoredEvent): Promise<Link | undefined> {
  if (revision === 0) return undefined;
  const [previous] = await store.readStream(stream, { direction: 'backwards', from: revision - 1, limit: 1 });
  if (!previous) return undefined;
  const { metadata } = decodeEvent(previous);
  return { revision: previous.revision, hash: metadata.hash };
}

/** Why the event does not fit; a text that can't even be decoded does not fit either. */
function faultOf(stored: StoredEvent, previous: Link | undefined): { fault: string | undefined; recorded?: RecordedEvent } {
  try {
    const recorded = decodeEvent(stored);
    return { fault: chainFault(recorded, previous), recorded };
  } catch {
    return { fault: 'it can not be decoded' };
  }
}

/**
 * Recomputes the hash chain of every stream, in the order of the log. Resolves with the first event that does not fit, or
 * undefined when all do up to the end of the log or until the signal aborts. Errors: `store_unavailable`.
 */
export async function verifyChains({ store, after, signal, onProgress }: Verification): Promise<Misfit | undefined> {
  const heads = new LRUCache<string, Link>({ max: REMEMBERED_HEADS });
  let events = 0;
  for await (const batch of store.subscribe({ after, batchSize: BATCH_SIZE, signal })) {
    for (const stored of batch.events) {
      const previous = heads.get(stored.stream) ?? (await previousOf(store, stored));
      const { fault, recorded } = faultOf(stored, previous);
      if (fault !== undefined || !recorded) return { stream: stored.stream, revision: stored.revision, id: stored.id, position: stored.position, reason: fault ?? '' };
      heads.set(stored.stream, { revision: stored.revision, hash: recorded.metadata.hash });
    }
    events += batch.events.length;
    onProgress({ events, position: batch.position ?? after });
    if (batch.caughtUp) return undefined;
  }
  return undefined;
}
