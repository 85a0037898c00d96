import {
  createCheckpoint,
  verifyCheckpoint,
  type LogIdentity,
} from '../../../shared/eventlog/identity/logIdentity.ts';
import { readLogUntil } from '../../../shared/eventlog/following/followLog.ts';
import { isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { Checkpoint, StoredEvent } from '../../../shared/ports/eventStore.ts';
import { createEndFinder } from '../../../shared/transparency/leaves/signedEnd.ts';
import { createSignedLeaves } from '../../../shared/transparency/leaves/signedLeaves.ts';
import { parseCheckpoint } from '../../../shared/transparency/tlog/checkpoint.ts';
import type { TileReader } from '../../../shared/transparency/tileStore.ts';
import { leafEntry } from '../../../shared/transparency/tlog/leaf.ts';
import { EMPTY_ROOT } from '../../../shared/transparency/tlog/merkle.ts';
import { parseNote } from '../../../shared/transparency/tlog/note.ts';
import { openRightEdge } from '../../../shared/transparency/tlog/rightEdge.ts';
import { TILE_WIDTH } from '../../../shared/transparency/tlog/tiles.ts';
import type { TreeHead } from '../../../shared/transparency/tlog/verify.ts';
import { treeRefusal, type OpenTree } from './openTree.ts';
import type { Prover } from './prover.ts';

const BATCH_SIZE = 1_000;

/** An open tree before it grows. */
interface StoredTree extends Pick<
  OpenTree,
  'origin' | 'signedSize' | 'storedSize' | 'last' | 'root'
> {
  store: TileReader;
}

/** The last event before a bundle of leaves under a checkpoint; undefined if its leaf is another one. */
async function startOf(
  { store, origin }: StoredTree,
  head: TreeHead,
  bundle: number,
): Promise<Checkpoint | undefined> {
  const start = await store.beforeBundle(bundle);
  if (!start) return undefined;
  const leaf = { index: bundle * TILE_WIDTH - 1, hash: start.event_hash };
  const isSigned = await createSignedLeaves()(store, { treeId: origin, ...head }, leaf).catch(
    (error: unknown) => {
      if (isTurnlogError(error, 'proof_invalid')) return false;
      throw error;
    },
  );
  return isSigned ? start : undefined;
}

async function readHead({ store, signedSize }: StoredTree): Promise<TreeHead> {
  const note = signedSize() === 0 ? undefined : await store.readCheckpoint();
  return note === undefined ? { size: 0, root: EMPTY_ROOT } : parseCheckpoint(parseNote(note).text);
}

/** Requires that the tree continues after the event of its last leaf, at any position in its state. */
async function requireLastEvent(
  log: Prover['log'],
  { origin, store, signedSize, last }: StoredTree,
): Promise<void> {
  const note = await store.readCheckpoint();
  const checkpoint = last();
  if (note === undefined || signedSize() === 0 || !checkpoint) return;
  // Tells a log that was restored, or a node that lags behind, from events that were moved.
  await verifyCheckpoint(log, checkpoint);
  const head = { ...parseCheckpoint(parseNote(note).text), treeId: origin, reader: store };
  await createEndFinder(
    log,
    createSignedLeaves(),
  )(head).catch((error: unknown) => {
    if (!isTurnlogError(error, 'proof_invalid')) throw error;
    throw treeRefusal(origin, error.message);
  });
}

/**
 * Requires that the leaves which are stored and were not signed are those of the log: a crash leaves some,
 * and an account that can write to the files can add some, which the next checkpoint would sign. Adds the
 * events of the log to the signed tree again, and compares the roots.
 */
export async function requireTreeMatchesLog(
  { log, signal }: Pick<Prover, 'log' | 'signal'>,
  tree: StoredTree,
  identity: LogIdentity,
): Promise<void> {
  const { store, origin } = tree;
  const [signed, stored] = [tree.signedSize(), tree.storedSize()];
  if (signed === stored) return requireLastEvent(log, tree);
  const refusal = (): Error =>
    treeRefusal(
      origin,
      `${signed} of its ${stored} leaves were signed, and the others are not those of the event log. Restore its files from a backup.`,
    );
  const head = await readHead(tree);
  const edge = await openRightEdge(store, signed, stored);
  const bundle = Math.floor(signed / TILE_WIDTH);
  const after = bundle === 0 ? undefined : await startOf(tree, head, bundle);
  const isKnown = bundle === 0 || after !== undefined;
  if (!isKnown || Buffer.compare(edge.root(), head.root) !== 0) throw refusal();
  let index = bundle * TILE_WIDTH;
  let last: Checkpoint | undefined;

  function add(event: StoredEvent): void {
    last = createCheckpoint(identity, event);
    if (index >= signed) edge.append(leafEntry(last.event_hash, index));
    index += 1;
  }

  const following = { log, after, batchSize: BATCH_SIZE, signal };
  await readLogUntil(() => index === stored, add, following);
  if (signal.aborted) return;
  const isSame = index === stored && Buffer.compare(edge.root(), tree.root()) === 0;
  if (!isSame || last?.event_id !== tree.last()?.event_id) throw refusal();
}
