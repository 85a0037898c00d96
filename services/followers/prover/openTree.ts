import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { createCheckpoint } from '../../../shared/eventlog/identity/logIdentity.ts';
import type { Checkpoint, StoredEvent } from '../../../shared/ports/eventStore.ts';
import type { TileStore, TileTrees, TreeState } from '../../../shared/transparency/tileStore.ts';
import { missingTreeSentence, type LogTrees } from '../../../shared/transparency/logTrees.ts';
import { parseCheckpoint } from '../../../shared/transparency/tlog/checkpoint.ts';
import { isLeafOf, leafEntry } from '../../../shared/transparency/tlog/leaf.ts';
import { openNote } from '../../../shared/transparency/tlog/note.ts';
import {
  formatVkey,
  noteSigner,
  type NoteSigner,
} from '../../../shared/transparency/tlog/noteKeys.ts';
import { rootAt } from '../../../shared/transparency/tlog/proofs.ts';
import { openRightEdge } from '../../../shared/transparency/tlog/rightEdge.ts';
import { TILE_WIDTH } from '../../../shared/transparency/tlog/tiles.ts';
import type { Prover } from './prover.ts';

/** The tree of a log, open for appending leaves. */
export interface OpenTree {
  origin: string;
  store: TileStore;
  signers: readonly NoteSigner[];
  /** True if a checkpoint is stored. */
  hasCheckpoint: boolean;
  /** Stored leaves, and leaves under the newest checkpoint. */
  storedSize(): number;
  signedSize(): number;
  /** When this process signed that checkpoint, in milliseconds since 1970. */
  signedAt(): number | undefined;
  markSigned(at: number): void;
  /** Leaves that are not stored yet. */
  pending(): number;
  /** The last event that has a leaf, stored or not. */
  last(): Checkpoint | undefined;
  root(): Buffer;
  add(event: StoredEvent): void;
  /** Stores the pending leaves; durable when it resolves. */
  persist(): Promise<void>;
}

/** The error that says why a tree can't be continued. */
export const treeRefusal = (origin: string, sentence: string): TurnlogError =>
  new TurnlogError(
    'configuration_invalid',
    `The transparency log ${origin} can't be continued: ${sentence}`,
  );

/**
 * Returns the signers of a tree. Throws where the key file is missing or holds other keys than the log
 * declares: another key is only accepted beside a declared one.
 */
function requireSigners(
  origin: string,
  signers: readonly NoteSigner[],
  declared: readonly string[] | undefined,
): void {
  if (signers.length === 0)
    throw treeRefusal(
      origin,
      'its signing key file is missing, and no new key is created for a tree that was signed. Put the file back. If it is lost, declare another tree, which gets a new key: npm run cli -- audit declare-tree --reason <text>.',
    );
  if (!declared || signers.some(({ key }) => declared.includes(formatVkey(key)))) return;
  throw treeRefusal(
    origin,
    `the signing key file has none of the keys that the event log declares for it (${declared.join(', ')}). Put the key back that signed. To change keys, add the new one to the file, and take the old one out once both have signed. If the old one is lost, declare another tree: npm run cli -- audit declare-tree --reason <text>.`,
  );
}

/**
 * Returns how many leaves the newest checkpoint has. Throws where it is not of this tree and these
 * keys, with what to do.
 */
async function readSignedSize(
  store: TileStore,
  note: string,
  { origin, size, signers }: { origin: string; size: number; signers: readonly NoteSigner[] },
): Promise<number> {
  const keys = signers.map(({ key }) => key);
  let text: string;
  try {
    ({ text } = openNote(note, keys));
  } catch (error) {
    throw treeRefusal(
      origin,
      `its newest checkpoint was not signed by a key of the signing key file (${keys.map(({ id }) => id).join(', ')}). ${(error as Error).message} Put the key back that signed, or the checkpoint from a backup where that was damaged. To change keys, add the new one to the file, and take the old one out once both have signed. Without the old key, set LOG_ORIGIN to another name, under which a new tree is started.`,
    );
  }
  const head = parseCheckpoint(text);
  if (head.origin !== origin)
    throw treeRefusal(origin, `its newest checkpoint belongs to another log, ${head.origin}.`);
  if (head.size > size)
    throw treeRefusal(
      origin,
      `${head.size} leaves were signed, but only ${size} are stored. Restore its files from a newer backup.`,
    );
  if (Buffer.compare(await rootAt(store, head.size), head.root) !== 0)
    throw treeRefusal(
      origin,
      `its tiles don't have the root that was signed for ${head.size} leaves. Restore its files from a backup.`,
    );
  return head.size;
}

/**
 * Requires that the checkpoint is the event of the last leaf: after another one, events would have two
 * leaves or none.
 */
async function requireLastLeaf(
  store: TileStore,
  origin: string,
  { size, checkpoint }: TreeState,
): Promise<void> {
  if (!checkpoint) return;
  if (!(await isLeafOf(store, { index: size - 1, size }, checkpoint.event_hash)))
    throw treeRefusal(
      origin,
      `its last leaf does not belong to the event ${checkpoint.event_id}, which its state names. Restore its files from a backup.`,
    );
}

/**
 * Opens the tree of a log at its stored state. Throws where the tree does not match the signed
 * checkpoint, or is missing although the log declares it.
 */
export async function openTree(
  { origin: name, signingKeys }: Pick<Prover, 'origin' | 'signingKeys'>,
  trees: TileTrees,
  { identity, treeId, declared, damage }: LogTrees,
): Promise<OpenTree> {
  if (damage !== undefined) throw new TurnlogError('configuration_invalid', damage);
  const origin = `${name}/${treeId}`;
  const declaration = declared.get(origin);
  const store = await trees.open(origin);
  const note = await store.readCheckpoint();
  if (note === undefined && declaration)
    throw new TurnlogError('configuration_invalid', missingTreeSentence(origin));
  const state = await store.state();
  const keys = signingKeys(note !== undefined || state.size > 0);
  const signers = keys.map((key) => noteSigner(origin, key));
  let signed =
    note === undefined || signers.length === 0
      ? 0
      : await readSignedSize(store, note, { origin, size: state.size, signers });
  requireSigners(origin, signers, declaration?.vkeys);
  const edge = await openRightEdge(store, state.size);
  await requireLastLeaf(store, origin, state);
  let signedAt: number | undefined;
  let stored = state.size;
  let last = state.checkpoint;
  let bundles = new Map<number, Checkpoint>();

  return {
    origin,
    store,
    signers,
    hasCheckpoint: note !== undefined,
    storedSize: () => stored,
    signedSize: () => signed,
    signedAt: () => signedAt,
    markSigned: (at) => void ([signed, signedAt] = [stored, at]),
    pending: () => edge.size() - stored,
    last: () => last,
    root: edge.root,
    add(event) {
      const index = edge.size();
      if (last && index % TILE_WIDTH === 0) bundles.set(index / TILE_WIDTH, last);
      last = createCheckpoint(identity, event);
      edge.append(leafEntry(last.event_hash, index));
    },
    async persist() {
      const growth = { from: stored, files: edge.takeFiles(), bundles };
      bundles = new Map();
      await store.grow({ ...growth, state: { size: edge.size(), checkpoint: last } });
      stored = edge.size();
    },
  };
}
