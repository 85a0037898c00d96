import { isTurnlogError, type TurnlogError } from '../../lib/errors/turnlogError.ts';
import type { TileReader } from '../tileStore.ts';
import type { Witness } from '../witness.ts';
import { verifyCosignature } from '../tlog/cosignature.ts';
import { parseSignatureLine, signatureLine, type NoteSignature } from '../tlog/note.ts';
import { consistencyProof } from '../tlog/proofs.ts';

/** A checkpoint that the log has signed, with its size. */
export interface SignedCheckpoint {
  /** The signed text, with its last newline. */
  text: string;
  /** With the log's signature. */
  note: string;
  size: number;
}

/**
 * The signature line of a witness, or why there is none. `ahead` is the size of the checkpoint that it
 * cosigned last, when that is larger; `contradicts` is true when the checkpoint does not extend that
 * one, or this can't be shown; `unavailable` is the error when the tiles can't be read now.
 */
type CosignatureResult =
  | { line: string }
  | { trouble: string; ahead?: number; contradicts?: true; unavailable?: TurnlogError };

interface CosignatureRequest {
  witness: Witness;
  tiles: Pick<TileReader, 'read'>;
  signal: AbortSignal;
}

function signatureOf(line: string): NoteSignature | undefined {
  try {
    return parseSignatureLine(line);
  } catch {
    return undefined;
  }
}

/** Returns the line of the witness's key among those of its response, which may be of other keys too. */
function verified({ key }: Witness, text: string, lines: string): CosignatureResult {
  for (const line of lines.split('\n')) {
    const signature = signatureOf(line);
    if (signature && verifyCosignature(text, key, signature) !== undefined)
      return { line: signatureLine(signature) };
  }
  return { trouble: 'answers without a cosignature of this checkpoint by its key' };
}

const witnessAhead = (size: number, own: number): string =>
  `has cosigned a checkpoint of ${size} entries, and the log has ${own}: the log lost entries, or two logs have one origin`;

const ANOTHER_ROOT =
  'has cosigned a checkpoint of the same size with another root: the log was rewritten, or two logs have one origin';

/**
 * Requests the cosignature of a checkpoint from a witness. `oldSize` is the size that it cosigned last,
 * as far as is known; when the witness responds with another one, the request is repeated once from
 * there. Never rejects.
 */
export async function requestCosignature(
  { witness, tiles, signal }: CosignatureRequest,
  { text, note, size }: SignedCheckpoint,
  oldSize: number,
): Promise<CosignatureResult> {
  let from = Math.min(oldSize, size);
  for (let tries = 2; tries > 0; tries -= 1) {
    let proof: Uint8Array[];
    try {
      proof = await consistencyProof(tiles, from, size);
    } catch (error) {
      const trouble = 'got no request: the tiles for its proof can’t be read';
      return isTurnlogError(error, 'store_unavailable')
        ? { trouble, unavailable: error }
        : { trouble, contradicts: true };
    }
    const answer = await witness.addCheckpoint({ oldSize: from, proof, checkpoint: note }, signal);
    if ('trouble' in answer) return answer;
    if ('lines' in answer) return verified(witness, text, answer.lines);
    if (answer.size > size) return { trouble: witnessAhead(answer.size, size), ahead: answer.size };
    // A witness also responds so to another root of the same size.
    if (answer.size === from && from === size) return { trouble: ANOTHER_ROOT, contradicts: true };
    from = answer.size;
  }
  return { trouble: 'repeatedly reports a different size of its latest cosigned checkpoint' };
}
