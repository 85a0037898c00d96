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

/** How often the transparency log is looked at while it is behind. */
const LOOK_MS = 50;
const RETRY_AFTER_SECONDS = 1;

/** Proof that an event is in the log. */
export interface EventProof {
  /** What the leaf says, as canonical JSON: the event's hash and its place in the log, from 0. */
  leaf: { hash: string; index: number };
  /** C2SP tlog-proof; the checkpoint is its end. */
  proof: string;
  /** C2SP tlog-checkpoint, cosigned as far as witnesses did. */
  checkpoint: string;
}

/** What is to be proven. */
export interface ProvenEvent {
  position: Position;
  hash: string;
}

/**
 * The proof under a checkpoint; undefined where that does not cover the event. Errors:
 * `proof_invalid` where tiles were changed, those of the reader.
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
 * Proves an event under the newest checkpoint, and waits for one that covers it. Errors:
 * `proof_pending` where none does in time, `store_unavailable`.
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
