import { createChainChecker } from '../eventlog/chainChecker.ts';
import type { EventStore, Position, StoredEvent } from '../ports/eventStore.ts';
import { recordedHash } from '../proof/nameChange.ts';
import type { TreeChecker } from '../proof/treeChecker.ts';
import type { TreeFault } from '../proof/treeFault.ts';

const BATCH_SIZE = 1_000;

interface VerifyProgress {
  events: number;
  /** Where a later verification can go on. */
  position: Position | undefined;
}

/** The first event that does not fit its chain, or whose texts can't be had. */
export interface Misfit {
  stream: string;
  revision: number;
  id: string;
  position: Position;
  /** Why it does not fit: `its hash does not match its content`. */
  reason: string;
}

/** What was found first: an event that does not fit its chain, or a place where the tree differs. */
export type Finding =
  | { misfit: Misfit; fault?: never; found?: never }
  | { fault: TreeFault; found: StoredEvent | undefined; misfit?: never };

interface Verification {
  store: Pick<EventStore, 'readStream' | 'subscribe'>;
  /** Verify only what comes after; everything when absent. */
  after: Position | undefined;
  /** Compares the log with its tree, from the same place on; chains alone when absent. */
  tree?: TreeChecker | undefined;
  /** Why a text of an event can't be had; texts are not looked at when absent. */
  textFault?: ((stored: StoredEvent) => Promise<string | undefined>) | undefined;
  signal: AbortSignal;
  onProgress: (progress: VerifyProgress) => void;
}

/** What the tree's fault and the chain's come to, of an event that has one or both. */
function findingOf(
  stored: StoredEvent,
  fault: TreeFault | undefined,
  reason: string | undefined,
): Finding | undefined {
  // Before its chain: where an event was dropped, the next one of its stream may be far away.
  if (fault && (fault.kind === 'event' || reason === undefined)) return { fault, found: stored };
  if (reason === undefined) return undefined;
  const { stream, revision, id, position } = stored;
  return { misfit: { stream, revision, id, position, reason } };
}

/**
 * Recomputes the hash chain of every stream, in the order of the log, and compares with the tree.
 * Resolves with what does not fit first, or undefined when all does up to the end of the log or
 * until the signal aborts.
 * Errors: `store_unavailable`.
 */
export async function verifyChains({
  store,
  after,
  tree,
  textFault,
  signal,
  onProgress,
}: Verification): Promise<Finding | undefined> {
  const faultOf = createChainChecker(store);
  let events = 0;

  for await (const batch of store.subscribe({ after, batchSize: BATCH_SIZE, signal })) {
    for (const stored of batch.events) {
      // Both are at hand for most events: to wait for each costs more than to hash it.
      const compared = tree?.next(recordedHash(stored), stored);
      const fault = compared && (await compared);
      const chained = faultOf(stored);
      const reason =
        (typeof chained === 'object' ? await chained : chained) ?? (await textFault?.(stored));
      const finding = findingOf(stored, fault, reason);
      if (finding) return finding;
    }
    events += batch.events.length;
    onProgress({ events, position: batch.events.at(-1)?.position ?? batch.position ?? after });
    if (!batch.caughtUp) continue;
    const fault = await tree?.end();
    return fault && { fault, found: undefined };
  }
  return undefined;
}
