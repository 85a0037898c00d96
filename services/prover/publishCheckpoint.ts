import { settlesWithin } from '../../shared/settlesWithin.ts';
import { formatCheckpoint } from '../../shared/tlog/checkpoint.ts';
import { signNote } from '../../shared/tlog/note.ts';
import { consistencyProof } from '../../shared/tlog/proofs.ts';
import type { OpenTree } from './openTree.ts';
import type { Cosign, Prover, SignedCheckpoint } from './prover.ts';

/** How long witnesses may take: the checkpoint is published without those that take longer. */
const COSIGN_MS = 2_000;

/** No witness. */
export const cosignedByNobody: Cosign = async () => [];

/** The lines that witnesses gave in time. */
async function linesFrom(
  { cosign, logger, signal }: Pick<Prover, 'cosign' | 'logger' | 'signal'>,
  checkpoint: SignedCheckpoint,
): Promise<readonly string[]> {
  const late = new AbortController();
  let lines: readonly string[] = [];
  const asked = cosign(checkpoint, AbortSignal.any([signal, late.signal]))
    .then((had) => void (lines = had))
    .catch((error: unknown) => logger.warn({ err: error }, 'Witnesses could not be asked'));
  await settlesWithin(asked, COSIGN_MS);
  late.abort();
  return lines;
}

/**
 * Signs the tree as it is kept, and publishes that with what witnesses say. The tree was kept before:
 * what is signed here can always be carried on. Errors: those of the store.
 */
export async function publishCheckpoint(
  prover: Pick<Prover, 'cosign' | 'clock' | 'logger' | 'signal'>,
  tree: OpenTree,
): Promise<void> {
  const { origin, store, signers } = tree;
  const size = tree.kept();
  const note = signNote(formatCheckpoint({ origin, size, root: tree.root() }), signers);
  const proof = (from: number): Promise<Uint8Array[]> => consistencyProof(store, from, size);
  const lines = await linesFrom(prover, { note, size, consistencyProof: proof });
  await store.publish(note + lines.join(''));
  tree.noteSigned(prover.clock.now());
}
