import {
  createCheckpoint,
  type LogIdentity,
} from '../../../shared/eventlog/identity/logIdentity.ts';
import { readLogUntil } from '../../../shared/eventlog/following/followLog.ts';
import type { Checkpoint, StoredEvent } from '../../../shared/ports/eventStore.ts';
import { isLeafOf } from '../../../shared/transparency/tlog/leaf.ts';
import { TILE_WIDTH } from '../../../shared/transparency/tlog/tiles.ts';
import { treeRefusal, type OpenTree } from './openTree.ts';
import type { Prover } from './prover.ts';

const BATCH_SIZE = 1_000;
/** Bundles whose beginnings are stored together. */
const BUNDLES = 256;
/**
 * The shortest time between two looks at the index, and the time for each bundle in it: a look at 4,000
 * bundles, of a million events, takes 12 ms.
 */
const LOOK_MS = 1_000;
const LOOK_MS_PER_BUNDLE = 2;

/** Throws where the event is not that of the last leaf of its bundle. */
async function requireLeaf(
  { store, origin }: Pick<OpenTree, 'store' | 'origin'>,
  last: number,
  { event_id, event_hash }: Checkpoint,
): Promise<void> {
  if (await isLeafOf(store, { index: last, size: last + 1 }, event_hash)) return;
  throw treeRefusal(
    origin,
    `leaf ${last} does not belong to the event ${event_id}, which is at its position in the log.`,
  );
}

/**
 * Reads from the log where entry bundles begin, from the first bundle on whose beginning is lost or
 * damaged: without it, later events are not found in the tree. A log that ends too early is detected
 * when it is followed.
 */
export async function repairBundleIndex(
  { log, logger, signal }: Pick<Prover, 'log' | 'logger' | 'signal'>,
  tree: Pick<OpenTree, 'store' | 'origin' | 'storedSize'>,
  identity: LogIdentity,
): Promise<void> {
  const { store, origin } = tree;
  const bundles = Math.ceil(tree.storedSize() / TILE_WIDTH);
  const first = await store.firstUnknownBundle(bundles);
  if (first === undefined) return;
  logger.warn(
    { origin, bundle: first, bundles },
    'The transparency log has lost its index of entry bundles: rebuilding it from the event log',
  );
  const after = await store.beforeBundle(first - 1);
  let leaves = (first - 1) * TILE_WIDTH;
  let beginnings = new Map<number, Checkpoint>();

  async function addLeaf(event: StoredEvent): Promise<void> {
    leaves += 1;
    if (leaves % TILE_WIDTH !== 0) return;
    const before = createCheckpoint(identity, event);
    await requireLeaf(tree, leaves - 1, before);
    beginnings.set(leaves / TILE_WIDTH, before);
    if (beginnings.size < BUNDLES) return;
    await store.putBundles(beginnings);
    beginnings = new Map();
  }

  const bundledLeaves = (bundles - 1) * TILE_WIDTH;
  const following = { log, after, batchSize: BATCH_SIZE, signal };
  await readLogUntil(() => leaves === bundledLeaves, addLeaf, following);
  await store.putBundles(beginnings);
}

/**
 * Returns a function that repairs the index where it was lost since the last look: until then, events
 * are not found in the tree. It looks seldom enough to cost little.
 */
export function createIndexRepair(
  prover: Pick<Prover, 'log' | 'logger' | 'signal'>,
  tree: Pick<OpenTree, 'store' | 'origin' | 'storedSize'>,
  identity: LogIdentity,
): () => Promise<void> {
  let lookedAt = performance.now();
  return async () => {
    const bundles = tree.storedSize() / TILE_WIDTH;
    const pauseMs = Math.max(LOOK_MS, bundles * LOOK_MS_PER_BUNDLE);
    if (performance.now() - lookedAt < pauseMs) return;
    await repairBundleIndex(prover, tree, identity);
    lookedAt = performance.now();
  };
}
