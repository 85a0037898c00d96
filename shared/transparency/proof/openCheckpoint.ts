import { proofInvalidError } from '../../lib/errors/turnlogError.ts';
import { parseCheckpoint, type CheckpointText } from '../tlog/checkpoint.ts';
import { openNote } from '../tlog/note.ts';
import type { NoteKey } from '../tlog/noteKeys.ts';

/**
 * Opens a checkpoint that one of the keys of a log has signed. Throws `proof_invalid` when no key
 * has signed it, a signature is invalid, or the checkpoint belongs to another log.
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
