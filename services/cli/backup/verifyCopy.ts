import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { parseConfig, type Environment } from '../../../shared/lib/config/config.ts';
import { isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { openOperator } from '../../compose/operator/operator.ts';
import { verifyEverything } from '../audit/verify.ts';
import type { TerminalContext } from '../context.ts';

/**
 * Verifies the log in the folders of an environment with its transparency log and, where there are keys,
 * its texts. Resolves with what does not fit, in a sentence; undefined if everything does, or the signal
 * aborted.
 */
export async function findMisfit(
  terminal: TerminalContext,
  env: Environment,
): Promise<string | undefined> {
  const config = parseConfig(env);
  const hasKeys = existsSync(join(config.KEYS_DIR ?? config.DATA_DIR, 'keys.db'));
  const operator = await openOperator(config, terminal.logger('error'), terminal.signal);
  try {
    const context = { ...terminal, env, operator };
    return (await verifyEverything(context, hasKeys ? { texts: true } : {})).misfit;
  } catch (error) {
    // The signing key is missing, or the files of the tree are damaged.
    if (isTurnlogError(error, 'configuration_invalid') || isTurnlogError(error, 'proof_invalid'))
      return error.message;
    throw error;
  } finally {
    await operator.close();
  }
}
