import { createChainChecker } from './chainChecker.ts';
import type { EventStore, Position, StoredEvent } from '../../ports/eventStore.ts';
import { beginsFork, forkFault } from '../../transparency/proof/forkFault.ts';
import { recordedHash } from '../../transparency/proof/nameChange.ts';
import type { FoundFault, Leaf, TreeChecker } from '../../transparency/proof/treeChecker.ts';
import type { TreeFault } from '../../transparency/proof/treeFault.ts';

const BATCH_SIZE = 1_000;

interface VerifyProgress {
  events: number;
  /** Where a later verification can go on. */
  position: Position | undefined;
}

/** The first event that does not fit its chain, or whose texts can't be had. */
export interface ChainMismatch {
  stream: string;
  revision: number;
  id: string;
  position: Position;
  /** Why it does not fit: `its hash does not match its content`. */
  reason: string;
}

/** What was found first: an event that does not fit its chain, or a place where the tree differs. */
export type VerificationFinding =
  | { misfit: ChainMismatch; fault?: never; found?: never }
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

const leafOf = (stored: StoredEvent): Leaf => ({
  hash: recordedHash(stored),
  id: stored.id,
  position: stored.position,
});

/** The first of events that does not fit its chain, or of which a text can't be had. */
interface BatchMismatch {
  at: number;
  reason: string;
}

/** What the tree's fault and the chain's come to, whichever is first. */
function findingOf(
  events: readonly StoredEvent[],
  faulty: FoundFault | undefined,
  misfit: BatchMismatch | undefined,
): VerificationFinding | undefined {
  // Before its chain: where an event was dropped, the next one of its stream may be far away.
  const isFirst = (at: number): boolean => !misfit || at < misfit.at;
  if (faulty && (isFirst(faulty.at) || (faulty.fault.kind === 'event' && faulty.at === misfit!.at)))
    return { fault: faulty.fault, found: events[faulty.at] };
  if (!misfit) return undefined;
  const { stream, revision, id, position } = events[misfit.at]!;
  return { misfit: { stream, revision, id, position, reason: misfit.reason } };
}

/**
 * Recomputes the hash chain of every stream, in the order of the log, looks whether forks name what
 * they were forked after, and compares with the tree.
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
}: Verification): Promise<VerificationFinding | undefined> {
  const faultOf = createChainChecker(store);
  let events = 0;

  async function firstMisfit(batch: readonly StoredEvent[]): Promise<BatchMismatch | undefined> {
    for (const [at, stored] of batch.entries()) {
      // It is at hand for most events: to wait for each costs more than to hash it.
      const chained = faultOf(stored);
      const reason =
        (typeof chained === 'object' ? await chained : chained) ??
        (beginsFork(stored) ? await forkFault(store, stored) : undefined) ??
        (textFault && (await textFault(stored)));
      if (reason !== undefined) return { at, reason };
    }
    return undefined;
  }

  for await (const batch of store.subscribe({ after, batchSize: BATCH_SIZE, signal })) {
    // The tree is compared meanwhile, where that has a thread of its own.
    const [faulty, misfit] = await Promise.all([
      tree?.compare(batch.events.map(leafOf)),
      firstMisfit(batch.events),
    ]);
    const finding = findingOf(batch.events, faulty, misfit);
    if (finding) return finding;
    events += batch.events.length;
    onProgress({ events, position: batch.events.at(-1)?.position ?? batch.position ?? after });
    if (!batch.caughtUp) continue;
    const fault = await tree?.end();
    return fault && { fault, found: undefined };
  }
  return undefined;
}
