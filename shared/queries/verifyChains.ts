import { createChainChecker } from '../eventlog/chainChecker.ts';
import type { EventStore, Position } from '../ports/eventStore.ts';

const BATCH_SIZE = 1_000;

interface VerifyProgress {
  events: number;
  /** Where a later verification can go on. */
  position: Position | undefined;
}

/** The first event that does not fit its chain. */
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

/**
 * Recomputes the hash chain of every stream, in the order of the log. Resolves with the first event
 * that does not fit, or undefined when all do up to the end of the log or until the signal aborts.
 * Errors: `store_unavailable`.
 */
export async function verifyChains({
  store,
  after,
  signal,
  onProgress,
}: Verification): Promise<Misfit | undefined> {
  const faultOf = createChainChecker(store);
  let events = 0;
  for await (const batch of store.subscribe({ after, batchSize: BATCH_SIZE, signal })) {
    for (const stored of batch.events) {
      const reason = await faultOf(stored);
      if (reason !== undefined)
        return {
          stream: stored.stream,
          revision: stored.revision,
          id: stored.id,
          position: stored.position,
          reason,
        };
    }
    events += batch.events.length;
    onProgress({ events, position: batch.position ?? after });
    if (batch.caughtUp) return undefined;
  }
  return undefined;
}
