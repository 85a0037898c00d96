import { proofInvalidError } from '../../lib/errors/turnlogError.ts';
import { parseCheckpoint, type CheckpointText } from '../tlog/checkpoint.ts';
import { openNote } from '../tlog/note.ts';
import type { NoteKey } from '../tlog/noteKeys.ts';

/**
 * A checkpoint that one of the keys, which are of one log, has signed. Errors: `proof_invalid` where
 * none has, where a signature is wrong, and where it is of another log.
 */
export function openCheckpoint(
  text: string,
  keys: readonly NoteKey[],
): { note: ReturnType<typeof openNote>; checkpoint: CheckpointText } {
  const note = openNote(text, keys);
  const checkpoint = parseCheckpoint(note.text);
  const [{ name } = { name: '' }] = keys;
  if (checkpoint.origin !== name)
    throw proofInvalidError(`The checkpoint is of ${checkpoint.origin}, and the key of ${name}.`);
  return { note, checkpoint };
}
