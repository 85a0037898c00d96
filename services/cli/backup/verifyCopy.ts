import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { parseConfig, type Environment } from '../../../shared/lib/config/config.ts';
import { verifyCheckpoint } from '../../../shared/eventlog/identity/logIdentity.ts';
import { isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { ownOrigin, readLogTrees } from '../../../shared/transparency/logTrees.ts';
import type { TreeState } from '../../../shared/transparency/tileStore.ts';
import { openOperator, type Operator } from '../../compose/operator/operator.ts';
import { verifyEverything } from '../audit/verify.ts';
import type { TerminalContext } from '../context.ts';

/**
 * Verifies the log in the folders of an environment with its transparency log and, where there are keys,
 * its texts. Resolves with what does not fit, in a sentence; undefined if everything does, or the signal
 * aborted.
 */
export async function findBackupFault(
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

async function readTreeState(
  { store, treeOf, lastTree }: Pick<Operator, 'store' | 'treeOf' | 'lastTree'>,
  origin: string,
): Promise<TreeState | undefined> {
  const trees = await readLogTrees(store);
  const tree = await (trees ? treeOf(ownOrigin(trees, origin)) : lastTree());
  return tree.state().catch((error: unknown) => {
    // The service reports a damaged tree, and signs nothing.
    if (isTurnlogError(error, 'proof_invalid')) return undefined;
    throw error;
  });
}

/**
 * Looks for the last leaf of the transparency log in a log that was backed up apart from it. Resolves
 * with a sentence if the log lacks that event; undefined if it has it, or there is no leaf. `origin` is
 * LOG_ORIGIN. Throws `store_unavailable`.
 */
export async function findTreeAhead(
  operator: Pick<Operator, 'store' | 'treeOf' | 'lastTree'>,
  origin: string,
): Promise<string | undefined> {
  const { size, checkpoint } = (await readTreeState(operator, origin)) ?? {};
  if (!checkpoint) return undefined;
  try {
    await verifyCheckpoint(operator.store, checkpoint);
    return undefined;
  } catch (error) {
    if (!isTurnlogError(error, 'log_changed')) throw error;
    const { event_id, position } = checkpoint;
    return `The transparency log is ahead of the log: its last leaf, of ${size}, is the event ${event_id} at ${position}, which the log does not hold.`;
  }
}
