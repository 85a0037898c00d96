import { isTurnlogError, TurnlogError } from '../../lib/errors/turnlogError.ts';
import type { TileReader } from '../tileStore.ts';
import { sleep } from '../../lib/time/sleep.ts';
import { parseCheckpoint } from '../tlog/checkpoint.ts';
import { createSingleProver, type ProvenEvent } from '../leaves/leafProver.ts';
import { findLeafIndex } from '../tlog/leaf.ts';
import { parseNote } from '../tlog/note.ts';
import { formatProof } from '../tlog/proofFile.ts';

/** How long a response waits for a checkpoint that covers the event. */
const RESPONSE_WAIT_MS = 1_500;
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

/**
 * Proves an event under a checkpoint; undefined when the checkpoint does not cover the event.
 * Throws `proof_invalid` when tiles were changed.
 */
export async function proofUnder(
  tiles: TileReader,
  event: ProvenEvent,
  checkpoint: string,
): Promise<EventProof | undefined> {
  const head = parseCheckpoint(parseNote(checkpoint).text);
  const leaf = await createSingleProver(tiles, head)(event);
  if (!leaf) return undefined;
  const { index, hashes } = leaf;
  const proof = formatProof({ index, hashes, checkpoint });
  return { leaf: { hash: event.hash, index }, proof, checkpoint };
}

/** True when the tree has grown over the place of an event, and has no leaf with its hash there. */
async function hasNoLeaf(tiles: TileReader, event: ProvenEvent): Promise<boolean> {
  try {
    const { size, checkpoint } = await tiles.state();
    if (!checkpoint || event.position > checkpoint.position) return false;
    return (await findLeafIndex(tiles, event, size)) === undefined;
  } catch (error) {
    // A tree that does not know how large it is does not grow, which the prover reports.
    if (isTurnlogError(error, 'proof_invalid')) return false;
    throw error;
  }
}

/**
 * Waits up to `waitMs` milliseconds, by default as long as a response does, for a checkpoint that covers an event, and proves the event
 * under it. Undefined when the tree has another event in its place. Throws `proof_pending` after
 * that time.
 */
export async function proveEvent(
  tiles: TileReader,
  event: ProvenEvent,
  waitMs = RESPONSE_WAIT_MS,
): Promise<EventProof | undefined> {
  const deadline = performance.now() + waitMs;
  for (;;) {
    const checkpoint = await tiles.readCheckpoint();
    const proof = checkpoint && (await proofUnder(tiles, event, checkpoint));
    if (proof) return proof;
    if (performance.now() >= deadline) {
      if (await hasNoLeaf(tiles, event)) return undefined;
      throw pending();
    }
    await sleep(LOOK_MS);
  }
}

const pending = (): TurnlogError =>
  new TurnlogError(
    'proof_pending',
    'The transparency log does not cover the event yet: try again.',
    { retriable: true, retryAfterSeconds: RETRY_AFTER_SECONDS },
  );
