import { isTurnlogError } from '../lib/errors/turnlogError.ts';
import { verifyCosignature } from './tlog/cosignature.ts';
import { parseNote, signaturesOf } from './tlog/note.ts';
import type { NoteKey } from './tlog/noteKeys.ts';

/**
 * A time that has passed by the clocks of as many witnesses as wanted, from their cosignatures of a
 * checkpoint; undefined if fewer have cosigned it. Milliseconds since the epoch.
 */
export function witnessedTime(
  checkpoint: string,
  { keys, wanted }: { keys: readonly NoteKey[]; wanted: number },
): number | undefined {
  try {
    const note = parseNote(checkpoint);
    const times = keys.flatMap((key) => {
      const [latest] = signaturesOf(note, key)
        .flatMap((signature) => verifyCosignature(note.text, key, signature) ?? [])
        .toSorted((a, b) => b - a);
      return latest === undefined ? [] : [latest];
    });
    const seconds = times.toSorted((a, b) => b - a)[wanted - 1];
    return seconds === undefined ? undefined : seconds * 1_000;
  } catch (error) {
    if (isTurnlogError(error, 'proof_invalid')) return undefined;
    throw error;
  }
}
