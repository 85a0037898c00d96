import type { Clock } from '../../../shared/ports/clock.ts';
import { formatCheckpoint } from '../../../shared/transparency/tlog/checkpoint.ts';
import { signNote } from '../../../shared/transparency/tlog/note.ts';
import type { Cosigner } from './cosign.ts';
import type { OpenTree } from './openTree.ts';

/**
 * Signs the tree as it is kept, and publishes that with what witnesses say. The tree was kept before:
 * what is signed here can always be carried on. Errors: those of the store.
 */
export async function publishCheckpoint(
  cosigner: Pick<Cosigner, 'publish'>,
  tree: OpenTree,
  clock: Clock,
): Promise<void> {
  const { origin, signers } = tree;
  const root = tree.root();
  await cosigner.publish(
    signNote(formatCheckpoint({ origin, size: tree.storedSize(), root }), signers),
  );
  tree.markSigned(clock.now());
}
