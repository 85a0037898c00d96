import { readFile } from 'node:fs/promises';
import { isTurnlogError, TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { openCheckpoint } from '../../../shared/transparency/proof/openCheckpoint.ts';
import type { NoteKey } from '../../../shared/transparency/tlog/noteKeys.ts';

/** The text of a file that an operator named. Errors: `configuration_invalid`. */
export async function readTextFile(file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return undefined;
  return readFile(file, 'utf8').catch((error: unknown) => {
    throw new TurnlogError('configuration_invalid', `${file}: ${(error as Error).message}`);
  });
}

/** The checkpoint of a file. Errors: `configuration_invalid` for what is none of this log. */
export function openCheckpointFile(
  text: string,
  file: string,
  keys: readonly NoteKey[],
): ReturnType<typeof openCheckpoint> {
  try {
    return openCheckpoint(text, keys);
  } catch (error) {
    if (!isTurnlogError(error, 'proof_invalid')) throw error;
    throw new TurnlogError('configuration_invalid', `${file}: ${error.message}`);
  }
}
