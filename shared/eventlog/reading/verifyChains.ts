import { recordedHash } from '../hashChain.ts';
import { createSerialQueue } from '../../lib/concurrency/serialQueue.ts';
import { findContentFault, createChainChecker } from './chainChecker.ts';
import type {
  Checkpoint,
  EventBatch,
  EventStore,
  Position,
  StoredEvent,
} from '../../ports/eventStore.ts';
import { beginsFork, findForkFault } from '../../transparency/proof/forkFault.ts';
import type { FoundFault, Leaf, TreeChecker } from '../../transparency/proof/treeChecker.ts';
import type { TreeFault } from '../../transparency/proof/treeFault.ts';

const BATCH_SIZE = 1_000;
/**
 * The share of a batch whose contents this thread hashes where another thread can: both then take about
 * as long, because this one also reads the log, and the other one compares the tree.
 */
const OWN_SHARE = 0.4;
/** Batches that are checked at once, so that neither thread waits for the other one's messages. */
const BATCHES_IN_FLIGHT = 2;

interface VerifyProgress {
  events: number;
  /** A later verification can resume after this position. */
  position: Position | undefined;
}

/** The first event that breaks its chain, or whose texts can't be read. */
export interface ChainFault {
  stream: string;
  revision: number;
  id: string;
  position: Position;
  /** Why: `its hash does not match its content`. */
  reason: string;
}

/** The first finding: an event that breaks its chain, or a difference from the tree. */
type VerificationFinding =
  | { misfit: ChainFault; fault?: never; found?: never }
  | { fault: TreeFault; found: StoredEvent | undefined; misfit?: never };

interface Verification {
  store: Pick<EventStore, 'readStream' | 'subscribe'>;
  /** Verifies only later events; all events when undefined. */
  after: Checkpoint | Position | undefined;
  /**
   * Compares the log with its tree, from the same position; only chains are verified when
   * undefined.
   */
  tree?: TreeChecker | undefined;
  /** Returns why a text of an event can't be read; texts are not checked when undefined. */
  textFault?: ((stored: StoredEvent) => Promise<string | undefined>) | undefined;
  signal: AbortSignal;
  /** Takes each verified batch, in order. */
  onVerified?: ((batch: EventBatch) => Promise<void>) | undefined;
  onProgress: (progress: VerifyProgress) => void;
}

const leafOf = (stored: StoredEvent): Leaf => ({
  hash: recordedHash(stored),
  id: stored.id,
  position: stored.position,
});

/** The first event of a batch that breaks its chain or has an unreadable text. */
interface BatchMismatch {
  at: number;
  reason: string;
}

/** The earlier of the tree's fault and the chain's mismatch. */
function findingOf(
  events: readonly StoredEvent[],
  treeFault: FoundFault | undefined,
  misfit: BatchMismatch | undefined,
): VerificationFinding | undefined {
  // The tree comes first: when an event was dropped, the next one of its stream may be far away.
  const isFirst = (at: number): boolean => !misfit || at < misfit.at;
  if (
    treeFault &&
    (isFirst(treeFault.at) || (treeFault.fault.kind === 'event' && treeFault.at === misfit!.at))
  )
    return { fault: treeFault.fault, found: events[treeFault.at] };
  if (!misfit) return undefined;
  const { stream, revision, id, position } = events[misfit.at]!;
  return { misfit: { stream, revision, id, position, reason: misfit.reason } };
}

/**
 * Recomputes the hash chain of every stream in log order, checks that forks name their origin's
 * event, and compares the events with the tree. Resolves with the first finding; undefined when
 * there is none up to the end of the log or until the signal aborts. Throws `store_unavailable`.
 */
export async function verifyChains({
  store,
  after,
  tree,
  textFault,
  signal,
  onVerified,
  onProgress,
}: Verification): Promise<VerificationFinding | undefined> {
  const chain = createChainChecker(store);
  // Without another thread, a comparison must end before the next one begins.
  const inFlight = tree?.unlikeWritten ? BATCHES_IN_FLIGHT : 1;
  const begin = typeof after === 'object' ? after.position : after;
  let events = 0;

  /** The first misfit in a batch; contents from index `own` on are hashed elsewhere, and added to `linked`. */
  async function firstMisfit(
    batch: readonly StoredEvent[],
    own: number,
    linked: Set<number>,
  ): Promise<BatchMismatch | undefined> {
    for (const [at, stored] of batch.entries()) {
      const isLinked = at >= own && chain.link(stored);
      if (isLinked) linked.add(at);
      // Usually synchronous: awaiting each event costs more than hashing it.
      const chainResult = isLinked ? undefined : chain.check(stored);
      const reason =
        (typeof chainResult === 'object' ? await chainResult : chainResult) ??
        (beginsFork(stored) ? await findForkFault(store, stored) : undefined) ??
        (textFault && (await textFault(stored)));
      if (reason !== undefined) return { at, reason };
    }
    return undefined;
  }

  /** Streams continue from one batch to the next. */
  const chaining = createSerialQueue();

  async function checkBatch(
    batch: readonly StoredEvent[],
  ): Promise<VerificationFinding | undefined> {
    const own = tree?.unlikeWritten ? Math.ceil(batch.length * OWN_SHARE) : batch.length;
    const elsewhere = Promise.all([
      tree?.compare(batch.map(leafOf)),
      own < batch.length ? tree!.unlikeWritten!(batch.slice(own)) : [],
    ]);
    // This thread may fail first.
    elsewhere.catch(() => undefined);
    const linked = new Set<number>();
    let misfit = await chaining.run(() => firstMisfit(batch, own, linked));
    const [treeFault, unlike] = await elsewhere;
    for (const at of unlike.map((index) => own + index)) {
      const reason = linked.has(at) ? findContentFault(batch[at]!) : undefined;
      if (reason === undefined) continue;
      misfit = { at, reason };
      break;
    }
    return findingOf(batch, treeFault, misfit);
  }

  /** The batches that are checked while the next one is read, oldest first. */
  const running: { batch: EventBatch; result: ReturnType<typeof checkBatch> }[] = [];
  /** Waits until no more than `count` batches are being checked. */
  async function finishUntil(count: number): Promise<VerificationFinding | undefined> {
    while (running.length > count) {
      const { batch, result } = running.shift()!;
      const finding = await result;
      if (finding) return finding;
      events += batch.events.length;
      await onVerified?.(batch);
      onProgress({ events, position: batch.events.at(-1)?.position ?? batch.position ?? begin });
    }
    return undefined;
  }

  try {
    for await (const batch of store.subscribe({ after, batchSize: BATCH_SIZE, signal })) {
      const earlier = await finishUntil(inFlight - 1);
      if (earlier) return earlier;
      const result = checkBatch(batch.events);
      running.push({ batch, result });
      // It is awaited after the next reads.
      result.catch(() => undefined);
      if (!batch.caughtUp) continue;
      const finding = await finishUntil(0);
      if (finding) return finding;
      const fault = await tree?.end();
      return fault && { fault, found: undefined };
    }
  } catch (error) {
    // Findings of earlier batches count, although the next one can't be read.
    const finding = await finishUntil(0);
    if (finding) return finding;
    throw error;
  }
  return finishUntil(0);
}
