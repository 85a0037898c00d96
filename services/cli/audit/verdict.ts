import { isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { CheckpointText } from '../../../shared/transparency/tlog/checkpoint.ts';
import type { TerminalContext } from '../context.ts';
import { EXIT } from '../exitCodes.ts';

/** A checkpoint in the output of a command. */
export const presentCheckpoint = ({ origin, size, root }: CheckpointText) => ({
  origin,
  size,
  root: root.toString('base64'),
});

/** Runs a verification that shows its result; one that fails is shown too, and the exit code is 1. */
export async function showVerdict(
  { output, exitWith }: Pick<TerminalContext, 'output' | 'exitWith'>,
  verify: () => Promise<void> | void,
): Promise<void> {
  try {
    await verify();
  } catch (error) {
    if (!isTurnlogError(error, 'proof_invalid')) throw error;
    output.show({ fits: false, misfit: error.message }, `It does not fit. ${error.message}`);
    exitWith(EXIT.failed);
  }
}
