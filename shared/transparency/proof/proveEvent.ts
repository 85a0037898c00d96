import { proofInvalidError, TurnlogError } from '../../lib/errors/turnlogError.ts';
import type { Position } from '../../ports/eventStore.ts';
import type { TileReader } from '../tileStore.ts';
import { sleep } from '../../lib/time/sleep.ts';
import { parseCheckpoint } from '../tlog/checkpoint.ts';
import { leafEntry, leafIndexOf } from '../tlog/leaf.ts';
import { leafHash } from '../tlog/merkle.ts';
import { parseNote } from '../tlog/note.ts';
import { formatProof } from '../tlog/proofFile.ts';
import { inclusionProof } from '../tlog/proofs.ts';
import { verifyInclusion } from '../tlog/verify.ts';

/** Polling interval while the transparency log lags behind. */
const LOOK_MS = 50;
const RETRY_AFTER_SECONDS = 1;

/** A proof that an event is in the log. */
export interface EventProof {
  /** The content of the leaf: the hash of the event and its 0-based index in the log. */
  leaf: { hash: string; index: number };
  /** C2SP tlog-proof, which ends with the checkpoint. */
  proof: string;
  /** C2SP tlog-checkpoint with the available cosignatures. */
  checkpoint: string;
}

/** The event to prove. */
export interface ProvenEvent {
  position: Position;
  hash: string;
}

/**
 * Proves an event under a checkpoint; undefined when the checkpoint does not cover the event.
 * Throws `proof_invalid` when tiles were changed.
 */
export async function proofUnder(
  tiles: TileReader,
  { position, hash }: ProvenEvent,
  checkpoint: string,
): Promise<EventProof | undefined> {
  const head = parseCheckpoint(parseNote(checkpoint).text);
  const { size } = head;
  const index = await leafIndexOf(tiles, { position, hash }, size);
  if (index === undefined) return undefined;
  const hashes = await inclusionProof(tiles, index, size);
  if (!verifyInclusion(hashes, index, leafHash(leafEntry(hash, index)), head))
    throw proofInvalidError(
      `The tiles of the transparency log don't lead from leaf ${index} to its checkpoint of ${size}: files were changed. audit verify says which; put them back from a backup.`,
    );
  return { leaf: { hash, index }, proof: formatProof({ index, hashes, checkpoint }), checkpoint };
}

/**
 * Waits up to `waitMs` milliseconds for a checkpoint that covers an event, and proves the event
 * under it. Throws `proof_pending` after that time.
 */
export async function proveEvent(
  tiles: TileReader,
  event: ProvenEvent,
  waitMs: number,
): Promise<EventProof> {
  const deadline = performance.now() + waitMs;
  for (;;) {
    const checkpoint = await tiles.readCheckpoint();
    const proof = checkpoint && (await proofUnder(tiles, event, checkpoint));
    if (proof) return proof;
    if (performance.now() >= deadline) throw pending();
    await sleep(LOOK_MS);
  }
}

const pending = (): TurnlogError =>
  new TurnlogError(
    'proof_pending',
    'The transparency log does not cover the event yet: try again.',
    { retriable: true, retryAfterSeconds: RETRY_AFTER_SECONDS },
  );
